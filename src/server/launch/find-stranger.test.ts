import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../../../test/support/child-processes.ts';
import { launchOf } from '../../../test/support/machine-bench.ts';
import { makeFolder } from '../../../test/support/shell-bench.ts';
import { nodeHost } from '../../host/node-host.ts';
import { pickPort } from '../../host/ports.ts';
import { localMachine } from '../../machine/local/local-machine.ts';
import type { DetachedStart, ProcessIdentity } from '../../machine/machine.ts';
import { describeStranger, findStranger, type PortQuestion } from './find-stranger.ts';
import type { LaunchRecord } from './launch-book.ts';

const machine = localMachine(nodeHost());
const LOADS = { recognised: 3, ready: undefined };

function recordOf(launch: DetachedStart, identity: ProcessIdentity, port: number): LaunchRecord {
  const { marker, logPath, statusPath } = launch;
  return { n: 1, marker, logPath, statusPath, identity, port, flags: {}, env: {}, line: '', startedAt: 0, answered: 0 };
}

async function listenHere(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

describe.runIf(process.platform === 'linux')('who answers for a launch', () => {
  test('is a stranger while its log says that it loads, and not where that cannot be told', async () => {
    const launch = launchOf({ machine, folder: makeFolder() }, 'sleep 1000');
    const [identity, port] = [await machine.start(launch), await listenHere()];
    const record = recordOf(launch, identity, port);
    const ask = (more: Partial<PortQuestion>) => findStranger({ machine, launch: record, account: LOADS, ...more });
    const stranger = await ask({});
    expect(stranger).toMatchObject({ port, pid: process.pid });
    expect(stranger && describeStranger(stranger, machine)).toMatch(
      new RegExp(`^port ${port} is answered by pid ${process.pid} \\(.*\\).*\\(kill ${process.pid}\\)`),
    );
    const ready = { line: 9, text: 'The server is fired up and ready to roll!', at: undefined };
    expect(await ask({ account: { recognised: 9, ready } })).toBe(undefined);
    expect(await ask({ account: { recognised: 0, ready: undefined } })).toBe(undefined);
    expect(await ask({ launch: { ...record, contained: { kind: 'step' } as LaunchRecord['contained'] & object } })).toBe(
      undefined,
    );
    expect(await ask({ launch: { ...record, port: await pickPort() } })).toBe(undefined);
  });

  test('is none where the launch itself listens, in whichever of its processes', async () => {
    const port = await pickPort();
    const server = `require("node:net").createServer().listen(${port}, "127.0.0.1")`;
    const launch = launchOf({ machine, folder: makeFolder() }, `sh -c '"${process.execPath}" -e "$1" & wait' sh '${server}'`);
    const identity = await machine.start(launch);
    await until(async () => (await machine.portOwner(port)) !== undefined);
    expect((await machine.portOwner(port))?.pid).not.toBe(identity.pid);
    expect(await findStranger({ machine, launch: recordOf(launch, identity, port), account: LOADS })).toBe(undefined);
  });
});
