/**
 * What one look says of servers in every state, real processes, ports and logs: nobody, loading, warming up, at rest, with a dead
 * scheduler, killed. Several are looked at side by side.
 */
import { once } from 'node:events';
import { appendFileSync, truncateSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { makeProject } from '../support/cli.ts';
import { freePort } from '../support/launch-bench.ts';
import { SERVER_FLAGS, startProbedServer } from '../support/probed-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: documents of other programs
type Data = any;

const of = (data: Data, name: string) => data.hypotheses.find((one: Data) => one.name === name);

test('nobody there, a load, a warm-up, a dead scheduler behind a health of 200, and one that was killed', async () => {
  const project = makeProject();
  const slow = (phase: string) => ({
    phases: {
      'argument-parsing': { seconds: 2 },
      'distributed-init': { seconds: 2 },
      'weight-loading': { seconds: 2 },
      'kv-pool-allocation': { seconds: 2 },
      'cuda-graph-capture': { seconds: 2 },
      [phase]: { seconds: 1200 },
    },
  });
  const [loading, warming, headless, killed] = await Promise.all([
    startProbedServer(project, { name: 'loading', scenario: slow('weight-loading') }),
    startProbedServer(project, { name: 'warming', scenario: slow('warmup') }),
    startProbedServer(project, { name: 'headless' }),
    startProbedServer(project, { name: 'killed' }),
  ]);
  const probe = async (...args: string[]) => {
    const result = await project.aerie(['probe', ...args, '--json']);
    return { code: result.code, data: result.json().data as Data };
  };
  await Promise.all([
    loading.until('Load weight begin'),
    warming.until('Uvicorn running'),
    headless.until('fired up and ready'),
    killed.until('fired up and ready'),
  ]);
  await headless.fault({ do: 'schedulers-die' });
  await killed.kill('SIGKILL');
  const nobody = await freePort();

  const all = await Promise.all([
    probe('--url', `http://127.0.0.1:${nobody}`),
    probe('--url', loading.url),
    probe('--url', warming.url),
    probe('--url', headless.url),
    probe('--url', killed.url, '--log', killed.logPath),
  ]);
  expect(all.map(({ code }) => code)).toEqual([1, 1, 1, 1, 1]);
  const [absent, load, warm, dead, gone] = all.map(({ data }) => data);
  expect(absent).toMatchObject({ state: 'absent', health: { kind: 'refused', status: null }, activity: { kind: 'unknown' } });

  expect(load).toMatchObject({ state: 'initializing', phase: 'weight-loading', health: { kind: 'refused' } });
  expect(load.process).toMatchObject({ pid: loading.pid, presence: 'running', children: 8 });
  expect(load.log.path).toBe(loading.logPath);
  expect(of(load, 'loading').for.join('; ')).toMatch(
    /line \d+: weight-loading began.*a start has no fixed time.*a closed port is usual/,
  );
  expect(of(load, 'hung').for).toEqual([]);

  expect(warm).toMatchObject({ state: 'initializing', health: { kind: 'http', status: 503 }, capacity: { poolTokens: 159_277 } });
  expect(of(warm, 'loading').for).toContain('health says 503, as before and during its warm-up');

  expect(dead).toMatchObject({ state: 'hung', cause: 'workers-gone', health: { kind: 'http', status: 200 }, isReady: false });
  expect(of(dead, 'hung').for[0]).toContain('no scheduler any more');

  expect(gone).toMatchObject({ state: 'crashed', cause: 'died-without-a-word', health: { kind: 'refused' } });
  expect(of(gone, 'crashed').for.join('; ')).toContain('it had been ready, and its port is closed');
  // What it held stands in its log all the same.
  expect(gone.capacity).toMatchObject({ poolTokens: 159_277, kvType: { type: 'bf16' } });
});

test('a dozen servers at once, none of HTTP, are looked at without a word of Node', async () => {
  const project = makeProject();
  const speaker = createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')).on('error', () => undefined);
  speaker.listen(0, '127.0.0.1');
  await once(speaker, 'listening');
  onTestFinished(() => void speaker.close());
  const { port } = speaker.address() as AddressInfo;
  const servers = Array.from({ length: 12 }, () => ({ engine: 'sglang', attach: `http://127.0.0.1:${port}` }));
  const run = { run: 'r', model: 'm', servers, partitions: [{ name: 'B1', from: 'b1.jsonl' }] };
  writeFileSync(project.path('run.yaml'), JSON.stringify(run));
  writeFileSync(project.path('b1.jsonl'), '{"prompt":"hello"}\n');
  const result = await project.aerie(['probe', 'run.yaml']);
  expect(result.code, result.stdout + result.stderr).toBe(1);
  expect(result.stderr).not.toContain('MaxListeners');
  expect(result.stdout).toMatch(/health {5}refused: no answer of HTTP came \(.*HTTP/);
  expect(result.stdout).not.toContain('nothing listens there');
});

test('a locked server tells no secret: its key in the log, on its command line and in the environment', async () => {
  const project = makeProject();
  const key = 'open-sesame-41';
  const server = await startProbedServer(project, { name: 'locked', flags: [...SERVER_FLAGS, '--api-key', key] });
  await server.until('fired up and ready');
  appendFileSync(server.logPath, `[2026-11-30 21:00:00] ValueError: token ${key} of hf_abcdefghijklmnopqrstuv was refused\n`);
  const env = { MY_KEY: key };
  const [locked, open, told] = await Promise.all([
    project.aerie(['probe', '--url', server.url, '--json']),
    project.aerie(['probe', '--url', server.url, '--key-env', 'MY_KEY', '--json'], { env }),
    project.aerie(['probe', '--url', server.url, '--key-env', 'MY_KEY'], { env }),
  ]);
  expect(locked.json().data.unseen.join('\n')).toContain('it wants a key');
  expect(locked.stdout).not.toContain('hf_abcdefgh');
  expect(locked.json().data.facts.arguments.api_key).toBe('[secret]');
  expect(locked.json().data.process.command).toContain('--api-key [secret]');
  expect(open.json().data).toMatchObject({ capacity: { poolTokens: 159_277 }, health: { status: 200 } });
  expect(open.json().data.unseen.join('\n')).not.toContain('wants a key');
  for (const { stdout, stderr } of [open, told]) expect(stdout + stderr).not.toContain(key);
  const missing = await project.aerie(['probe', '--url', server.url, '--key-env', 'NO_SUCH_KEY']);
  expect(missing.code).toBe(3);
});

test('a log of 400 MB is read in time, its first line and its last', async () => {
  const project = makeProject();
  const path = project.path('huge.log');
  writeFileSync(
    path,
    '[2026-02-01 10:00:00 TP0] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=5.47 GB\n[2026-02-01 10:00:09] The server is fired up and ready to roll!\n',
  );
  truncateSync(path, 400 * 2 ** 20);
  appendFileSync(
    path,
    '\n[2026-02-01 10:02:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  File "/srv/sglang/srt/managers/scheduler.py", line 9, in run_batch\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.\n',
  );
  const result = await project.aerie(['probe', '--log', path, '--json']);
  const { data } = result.json();
  expect(data).toMatchObject({
    state: 'crashed',
    cause: 'runtime-oom-activation',
    capacity: { poolTokens: 159_277, freeAfterGraphsGiB: 5.47 },
  });
  expect(data.tookMs).toBeLessThan(25_000);
  expect(data.log.bytes).toBeGreaterThan(400 * 2 ** 20);
  // Read whole, or what was left out is said.
  if (data.log.read < data.log.bytes) expect(data.unseen.join('\n')).toMatch(/read .* of 400 MiB/);
  else expect(data.evidence[0].line).toBe(6);
});
