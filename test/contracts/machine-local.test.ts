/** This machine keeps the contract of machines. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodeHost } from '../../src/host/node-host.ts';
import { localMachine } from '../../src/machine/local/local-machine.ts';
import type { DetachedStart, ProcessIdentity } from '../../src/machine/machine.ts';
import { childrenOf, until } from '../support/child-processes.ts';
import { launchOf, presenceOf, type Starter, type StarterBench } from '../support/machine-bench.ts';
import { describeMachine } from './machine.ts';

const STARTER = fileURLToPath(new URL('../support/start-launch.mjs', import.meta.url));

function startElsewhere(launch: DetachedStart): Starter {
  const child = spawn(process.execPath, [STARTER, JSON.stringify(launch)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    identity: once(child.stdout, 'data').then(([said]) => JSON.parse(String(said)) as ProcessIdentity),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function open(): Promise<StarterBench> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'aerie-machine-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { machine: localMachine(nodeHost()), folder, startElsewhere };
}

// Without /proc nothing can be said of a process, and that is all a machine says there.
describe.runIf(process.platform === 'linux')('on Linux', () => {
  describeMachine('this machine', open);

  test('a starter need not stay, and leaves no zombie while it stays', async () => {
    const bench = await open();
    const launch = launchOf(bench, 'sleep 1000');
    const leaving = spawn(process.execPath, [STARTER, JSON.stringify(launch), 'end'], { stdio: ['ignore', 'pipe', 'inherit'] });
    expect(await once(leaving, 'exit')).toEqual([0, null]); // though its launch runs
    expect((await bench.machine.findByMarker(launch.marker)).length).toBe(2);

    const before = new Set(childrenOf(process.pid));
    const short = launchOf(bench, 'true');
    const identity = await bench.machine.start(short);
    await until(async () => (await presenceOf(bench.machine, short, identity)) === 'gone 0');
    await until(() => childrenOf(process.pid).every((pid) => before.has(pid))); // zombies are children too
  });
});
