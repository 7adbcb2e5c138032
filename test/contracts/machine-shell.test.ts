/** A machine that is asked in sh keeps the contract of machines, in every shell that is here and where nothing but sh and coreutils is. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, onTestFinished } from 'vitest';
import { nodeHost } from '../../src/host/node-host.ts';
import type { Machine, ProcessIdentity } from '../../src/machine/machine.ts';
import { shellMachine } from '../../src/machine/shell/shell-machine.ts';
import { type LocalWireRequest, localWire } from '../support/local-wire.mjs';
import type { StarterBench } from '../support/machine-bench.ts';
import { makeBarePath, shellsHere } from '../support/shells.ts';
import { describeMachine } from './machine.ts';

const STARTER = fileURLToPath(new URL('../support/start-over-shell.mjs', import.meta.url));

/** As a shell finds it on the PATH of this process. */
function tool(name: string): string {
  return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
}

function openWith(request: (folder: string) => LocalWireRequest): () => Promise<StarterBench> {
  return async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'aerie-machine-')));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const wire = request(folder);
    const machine: Machine = {
      ...shellMachine(localWire(wire), { name: 'a shell', clock: nodeHost().clock }),
      ...{ isHere: false, onReachChange: () => () => undefined, close: async () => undefined },
      reach: async (port) => ({
        baseUrl: `http://127.0.0.1:${port}`,
        isOpen: () => true,
        drops: () => 0,
        close: async () => undefined,
      }),
    };
    return {
      ...{ machine, folder, tool },
      startElsewhere(launch) {
        const child = spawn(process.execPath, [STARTER, JSON.stringify({ wire, launch })], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        const exited = once(child, 'exit');
        onTestFinished(() => void child.kill('SIGKILL'));
        return {
          identity: once(child.stdout, 'data').then(([said]) => JSON.parse(String(said)) as ProcessIdentity),
          async kill() {
            child.kill('SIGKILL');
            await exited;
          },
        };
      },
    };
  };
}

// Without /proc nothing can be said of a process, and that is all a machine says there.
describe.runIf(process.platform === 'linux')('on Linux', () => {
  for (const [name, shell] of shellsHere())
    describeMachine(
      name,
      openWith(() => ({ shell })),
    );
  describeMachine(
    'nothing but sh and coreutils',
    openWith((folder) => ({ shell: ['/bin/sh'], env: { PATH: makeBarePath(folder), HOME: folder } })),
  );
});
