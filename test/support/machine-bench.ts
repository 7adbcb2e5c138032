/** A folder and launches for tests of machines: all that they start is ended by identity when the test is over. */
import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { DetachedStart, Machine, ProcessIdentity } from '../../src/machine/machine.ts';

export interface MachineBench {
  readonly machine: Machine;
  /** A folder of its own on that machine. */
  readonly folder: string;
  /** Word of a program that the test itself needs there, where PATH does not have it. */
  readonly tool?: (name: 'perl' | 'setsid' | 'grep') => string;
}

/** For what outlives its starter: a starter that is a process of its own. */
export interface StarterBench extends MachineBench {
  startElsewhere(launch: DetachedStart): Starter;
}

export interface Starter {
  /** The program, once it is started. */
  readonly identity: Promise<ProcessIdentity>;
  /** SIGKILL, and waits until it is gone. */
  kill(): Promise<void>;
}

export function newMarker(): string {
  return `test-${randomBytes(8).toString('hex')}`;
}

/** A launch of `command` with everything else filled in; ended with the test. */
export function launchOf({ machine, folder }: MachineBench, command: string, more: Partial<DetachedStart> = {}): DetachedStart {
  const marker = newMarker();
  onTestFinished(() => endAll(machine, marker));
  const paths = { workFolder: folder, logPath: `${folder}/${marker}.log`, statusPath: `${folder}/${marker}.status` };
  return { setup: [], command, env: {}, ...paths, marker, ...more };
}

/** Members are ended from the youngest, because the oldest are the shells that reap. */
export async function endAll(machine: Machine, marker: string): Promise<void> {
  for (let round = 0; round < 200; round++) {
    const alive = (await machine.findByMarker(marker)).filter(({ presence }) => presence !== 'zombie');
    if (alive.length === 0) return;
    for (const member of [...alive].reverse()) await machine.signal(member, 'SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`processes of ${marker} cannot be ended`);
}

export async function readLog(machine: Machine, launch: DetachedStart): Promise<string> {
  const slice = await machine.readFile(launch.logPath, 0, 1_000_000);
  return slice === undefined ? '' : new TextDecoder().decode(slice.bytes);
}

export async function presenceOf(machine: Machine, launch: DetachedStart, identity: ProcessIdentity): Promise<string> {
  const { main, exitStatus } = await machine.look(identity, launch);
  return exitStatus === undefined ? main : `${main} ${exitStatus}`;
}
