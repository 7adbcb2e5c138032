/** Machines that are asked in sh, for tests: over a shell of this machine, and over ssh to a test's sshd. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Host } from '../../src/host/host.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import type { Machine, ProcessIdentity } from '../../src/machine/machine.ts';
import { shellMachine } from '../../src/machine/shell/shell-machine.ts';
import type { ShellWire } from '../../src/machine/shell-wire.ts';
import { openSshMachine } from '../../src/machine/ssh/open-ssh-machine.ts';
import { type LocalWireRequest, localWire } from './local-wire.mjs';
import type { Starter, StarterBench } from './machine-bench.ts';
import { type SshdRequest, startSshd, type TestSshd } from './sshd.ts';

export function makeFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'aerie-machine-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A machine over a wire; the way to its ports is none, as for a test that asks for none. */
export function machineOver(wire: ShellWire, name = 'a shell'): Machine {
  return {
    ...shellMachine(wire, { name, clock: nodeHost().clock }),
    ...{ isHere: false, onReachChange: () => () => undefined, close: async () => undefined },
    reach: async (port) => ({
      baseUrl: `http://127.0.0.1:${port}`,
      isOpen: () => true,
      drops: () => 0,
      refusal: () => undefined,
      close: async () => undefined,
    }),
  };
}

/** `request`: the shell and its environment, given the test's folder. */
export async function openShellBench(request: (folder: string) => LocalWireRequest): Promise<StarterBench> {
  const folder = makeFolder();
  const wire = request(folder);
  return {
    ...{ machine: machineOver(localWire(wire)), folder, tool },
    startElsewhere: (launch) => startIn('start-over-shell.mjs', { wire, launch }, process.env),
  };
}

/** The machine of a test's sshd: as the user of this process, or as an account without rights. */
export async function openSshBench(
  request: SshdRequest,
  patienceMs = 60_000,
): Promise<StarterBench & { readonly sshd: TestSshd }> {
  const sshd = await startSshd(request);
  const host: Host = { ...nodeHost(), env: { ...process.env, ...sshd.env } };
  const machine = openSshMachine({ target: sshd.target, host, patienceMs, signal: new AbortController().signal });
  onTestFinished(() => machine.close());
  return {
    ...{ machine, folder: realpathSync(sshd.home), tool, sshd },
    startElsewhere: (launch) => startIn('start-over-ssh.mjs', { target: sshd.target, launch }, host.env),
  };
}

/** As a shell finds it on the PATH of this process. */
function tool(name: string): string {
  return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
}

function startIn(program: string, given: unknown, env: Readonly<Record<string, string | undefined>>): Starter {
  const file = fileURLToPath(new URL(`./${program}`, import.meta.url));
  const child = spawn(process.execPath, [file, JSON.stringify(given)], { stdio: ['ignore', 'pipe', 'inherit'], env });
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
