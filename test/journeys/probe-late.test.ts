/** Health checks that take their time: nobody is called unresponsive for that alone, and a probe ends whatever hangs. Twenty seconds, side by side. */
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTcp, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { makeProject } from '../support/cli.ts';
import { startProbedServer } from '../support/probed-server.ts';

/** SGLang answers after its running step; a large prefill takes its time. */
const STEP_MS = 18_000;

test('a port that accepts and says nothing, a busy server whose health takes long, and a scheduler that hangs', async () => {
  const project = makeProject();
  const mute = await listen(createTcp());
  const busy = await startBusy(project.path('busy.log'));
  const hanging = await startProbedServer(project, { name: 'hanging' });
  await hanging.until('fired up and ready');
  await hanging.fault({ do: 'scheduler-hangs', health: 'lies' });
  const held = new AbortController();
  onTestFinished(() => held.abort());
  // Somebody's request, which is never answered.
  const body = JSON.stringify({ text: 'hello', sampling_params: { max_new_tokens: 64 } });
  void fetch(`${hanging.url}/generate`, { method: 'POST', body, signal: held.signal }).catch(() => undefined);

  const probe = async (...args: string[]) => {
    const result = await project.aerie(['probe', ...args, '--json']);
    return { code: result.code, data: result.json().data };
  };
  const told = project.aerie(['probe', '--url', `http://127.0.0.1:${mute}`]);
  const [silent, late, hung] = await Promise.all([
    probe('--url', `http://127.0.0.1:${mute}`),
    probe('--url', `http://127.0.0.1:${busy.port}`, '--log', busy.logPath),
    probe('--url', hanging.url),
  ]);
  for (const { data } of [silent, late, hung]) expect(data.tookMs).toBeLessThan(25_000);

  expect(silent.code).toBe(1);
  expect(silent.data).toMatchObject({ health: { kind: 'timeout', status: null }, isReady: false });
  expect(silent.data.state).not.toBe('unresponsive');
  // What was known was told long before the end, and the end adds to it.
  const words = (await told).stdout;
  expect(words.indexOf('no answer yet')).toBeGreaterThan(0);
  expect(words.indexOf('no answer yet')).toBeLessThan(words.indexOf('state '));

  expect(late.data).toMatchObject({
    state: 'serving',
    cause: 'none',
    health: { kind: 'http', status: 200 },
    activity: { kind: 'working', running: 34 },
  });
  expect(late.code).toBe(0);
  expect(late.data.activity.generatedTokens).toBeGreaterThan(0);
  expect(late.data.health.afterMs).toBeGreaterThan(STEP_MS / 2);
  const well = late.data.hypotheses.find(({ name }: { name: string }) => name === 'busy');
  expect(well.for.join('; ')).toMatch(/health: 200; an empty body is its usual answer; .* tokens in /);

  expect(hung.data).toMatchObject({ health: { kind: 'http', status: 200 }, capacity: { poolTokens: 159_277 } });
  expect(hung.data.unseen.join('\n')).toContain('/get_server_info: no answer in 15 s');
  expect(hung.data.activity.kind).not.toBe('working');
  // Its health says 200 by itself; what its scheduler alone can tell does not come.
  expect(hung.data).toMatchObject({ state: 'unresponsive', isReady: false, isWell: false });
  expect(hung.code).toBe(1);
});

async function listen(server: ReturnType<typeof createTcp> | Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined); // an asker that gives up may reset the connection
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** A server of the test's own in the shape of SGLang, at work all the time, with its log beside it. */
async function startBusy(logPath: string): Promise<{ readonly port: number; readonly logPath: string }> {
  const stamp = () => new Date().toISOString().slice(0, 19).replace('T', ' ');
  writeFileSync(logPath, `[${stamp()}] The server is fired up and ready to roll!\n`);
  let tokens = 1000;
  const decode = () => {
    tokens += 600;
    appendFileSync(
      logPath,
      `[${stamp()} TP0] Decode batch, #running-req: 34, #token: 90000, token usage: 0.56, cuda graph: True, gen throughput (token/s): 600.00, #queue-req: 116, \n`,
    );
  };
  const timer = setInterval(decode, 1000);
  onTestFinished(() => clearInterval(timer));
  const server = createServer((request, response) => {
    if (request.url === '/health') setTimeout(() => response.writeHead(200).end(), STEP_MS);
    else if (request.url === '/metrics')
      response.end(`sglang:generation_tokens_total ${tokens}\nsglang:num_running_reqs 34\nsglang:num_queue_reqs 116\n`);
    else response.writeHead(404).end();
  });
  return { port: await listen(server), logPath };
}
