/** Wires and ways to a test's sshd, and what they have left behind there: it is this machine, so /proc tells. All ends with the test. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Host } from '../../src/host/host.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import type { Reach } from '../../src/machine/machine.ts';
import type { ShellReply } from '../../src/machine/shell-wire.ts';
import { openReach } from '../../src/machine/ssh/reach.ts';
import type { Sharing } from '../../src/machine/ssh/ssh-command.ts';
import { openSshWire, type SshWire } from '../../src/machine/ssh/ssh-wire.ts';
import type { TestSshd } from './sshd.ts';

export function hostOf({ env }: Pick<TestSshd, 'env'>): Host {
  return { ...nodeHost(), env: { ...process.env, ...env } };
}

export function wireTo(sshd: Pick<TestSshd, 'env' | 'target'>, sharing?: () => Sharing): SshWire {
  const wire = openSshWire(sshd.target, hostOf(sshd), sharing === undefined ? {} : { sharing });
  onTestFinished(() => wire.close());
  return wire;
}

export async function wayTo(sshd: Pick<TestSshd, 'env' | 'target'>, port: number, sharing?: () => Sharing): Promise<Reach> {
  const way = { host: hostOf(sshd), target: sshd.target, address: '127.0.0.1', port, wasReached: () => false };
  const reach = await openReach(sharing === undefined ? way : { ...way, sharing });
  onTestFinished(() => reach.close());
  return reach;
}

/** `STATUS|stdout|stderr`, or what else came of it. */
export function textOf(reply: ShellReply): string {
  if (reply.kind !== 'ended') return reply.kind;
  return `${reply.code}|${new TextDecoder().decode(reply.stdout)}|${reply.stderr}`;
}

/** Seconds that nobody else sleeps: a `sleep` that can be told from all others. */
export function longTime(): string {
  return `${randomInt(10_000_000, 99_999_999)}`;
}

/** Who sleeps that long now. */
export function sleepers(seconds: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && commandOf(name) === `sleep\0${seconds}\0`)
    .map(Number);
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has ended between two looks
  }
}

const HOLDER = fileURLToPath(new URL('./hold-wire.mjs', import.meta.url));

/** An Aerie of its own, that the test may kill. */
export function holdElsewhere(sshd: TestSshd, what: 'script' | 'way', given: string): ChildProcessByStdio<null, Readable, null> {
  const child = spawn(process.execPath, [HOLDER, sshd.target, what, given], {
    env: { ...process.env, ...sshd.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}
