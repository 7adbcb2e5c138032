/** A server kept ready: a real program that is started, killed, started again, and looked at again when it comes back. */
import { getEventListeners } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import type { Event, Happening } from '../../src/base/events.ts';
import type { ServerFacts } from '../../src/engine/dialect.ts';
import { dialectOf } from '../../src/engine/dialects.ts';
import { Fleet } from '../../src/fleet/fleet.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import { KeptServer, type KeptServerOptions } from '../../src/server/kept-server.ts';
import { describeExit } from '../../src/server/launch-embedded.ts';
import type { LaunchedProcess } from '../../src/server/launched-process.ts';
import { startLookalike, until } from '../support/lookalike-bench.ts';

const host = nodeHost();
const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));

interface Keeping {
  readonly server: KeptServer;
  readonly fleet: Fleet;
  readonly happenings: Happening[];
  readonly admitted: ServerFacts[];
  /** Processes started so far. */
  launches(): number;
  kinds(): Event['kind'][];
}

function keep(change: Partial<KeptServerOptions>, argsOf: (launch: number) => readonly string[] = () => []): Keeping {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-kept-'));
  const happenings: Happening[] = [];
  const admitted: ServerFacts[] = [];
  let launches = 0;
  const launch = async (): Promise<LaunchedProcess> => {
    launches += 1;
    const portFile = join(folder, `port-${launches}`);
    const logPath = join(folder, 'log');
    const args = [PROGRAM, '--port', '0', '--port-file', portFile, '--lifeline', ...argsOf(launches)];
    const started = await host.startProcess({ file: process.execPath, args, env: {}, logPath, workFolder: folder });
    const leave = async () => {
      await started.stop(5_000);
      return 'stopped' as const;
    };
    return {
      pid: started.pid,
      exited: started.exited.then(describeExit),
      logPath,
      listening: (signal) => portOf(portFile, signal),
      leave,
    };
  };
  const server = new KeptServer({
    ...{ name: 's', model: 'lookalike', dialect: dialectOf('vllm'), headers: {}, connections: 4, patienceMs: 10_000, host },
    admit: (facts) => ({ launch: admitted.push(facts), facts }),
    onReady: () => undefined,
    emit: (happening) => void happenings.push(happening),
    ...(change.attach === undefined ? { launch } : {}),
    ...change,
  });
  onTestFinished(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const kinds = () => happenings.map(({ kind }) => kind);
  return { server, fleet: new Fleet([server], host.clock), happenings, admitted, launches: () => launches, kinds };
}

async function portOf(file: string, signal: AbortSignal): Promise<string | undefined> {
  while (!signal.aborted) {
    const port = Number(tryRead(file));
    if (port > 0) return `http://127.0.0.1:${port}`;
    await host.clock.sleep(20, signal);
  }
  return undefined;
}

function tryRead(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

test('a server that is killed is started again, on another port, and is ready again', async () => {
  const { server, fleet, admitted, launches } = keep({});
  const first = await fleet.choose(new AbortController().signal);
  process.kill(server.pid ?? 0, 'SIGKILL');
  await until(() => server.endpoint === undefined);
  const second = await fleet.choose(new AbortController().signal);
  expect([launches(), admitted.length, fleet.deaths]).toEqual([2, 2, 1]);
  expect(second).not.toBe(first);
});

test('one that never was ready and ends is an error with the last lines of its log', async () => {
  const { fleet } = keep({}, () => ['--no-such-flag']);
  await expect(fleet.choose(new AbortController().signal)).rejects.toMatchObject({ code: 'server.did-not-start', exitCode: 4 });
});

test('one that was ready and then ends before it is ready again is tried again, up to the limit', async () => {
  const { server, fleet, launches } = keep({}, (launch) => (launch === 1 ? [] : launch < 4 ? ['--no-such-flag'] : []));
  await fleet.choose(new AbortController().signal);
  process.kill(server.pid ?? 0, 'SIGKILL');
  await until(() => server.endpoint === undefined);
  await fleet.choose(new AbortController().signal);
  expect(launches()).toBe(4);
});

test('a stop while it is being launched leaves no process', async () => {
  const { server, kinds } = keep({});
  server.start();
  await until(() => kinds().includes('server.starting'));
  await server.stop();
  const { pid } = server;
  expect(pid === undefined || !isAlive(pid)).toBe(true);
});

test('an attached server that comes back as something else is looked at again before anything is asked of it', async () => {
  const before = await startLookalike({ args: ['--max-model-len', '1000'] });
  const { server, fleet, admitted } = keep({ attach: at(before.engine.baseUrl) });
  await fleet.choose(new AbortController().signal);
  await before.engine.stop();
  server.suspect();
  const after = await startLookalike({ args: ['--max-model-len', '2000', '--port', String(before.engine.port)] });
  const endpoint = await fleet.choose(new AbortController().signal);
  expect(admitted.map(({ contextTokens }) => contextTokens)).toEqual([1000, 2000]);
  expect([endpoint?.launch, endpoint?.facts.contextTokens]).toEqual([2, 2000]);
  server.suspect();
  expect(await fleet.choose(new AbortController().signal)).toBe(endpoint);
  expect((await after.get('/health')).status).toBe(200);
});

test('whoever waits for a server leaves no listener behind', async () => {
  const { server, fleet, kinds } = keep({ attach: at('http://127.0.0.1:9'), patienceMs: 60_000 });
  const ending = new AbortController();
  const waiting = Array.from({ length: 10 }, () => fleet.choose(ending.signal));
  await until(() => kinds().includes('server.waiting'));
  for (let nth = 0; nth < 20; nth++) server.suspect();
  expect(getEventListeners(ending.signal, 'abort').length).toBeLessThanOrEqual(10);
  ending.abort();
  expect(await Promise.all(waiting)).toEqual(Array(10).fill(undefined));
  expect(getEventListeners(ending.signal, 'abort').length).toBe(0);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function at(baseUrl: string): NonNullable<KeptServerOptions['attach']> {
  const reach = { baseUrl, isOpen: () => true, drops: () => 0, refusal: () => undefined, close: async () => undefined };
  return { written: baseUrl, open: async () => reach };
}
