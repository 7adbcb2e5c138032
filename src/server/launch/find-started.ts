/** Who belongs to a launch of the book whose starter may have died at any moment. Acts on nothing. */
import { AerieError } from '../../base/errors.ts';
import type { Emit } from '../../base/events.ts';
import type { Clock } from '../../host/host.ts';
import { findLaunched } from '../../machine/find-launched.ts';
import type { Machine, ProcessIdentity } from '../../machine/machine.ts';
import { machineOfLaunch } from './contained-launch.ts';
import type { LaunchRecord } from './launch-book.ts';

/** Setup lines take seconds: an environment is activated, a module loaded. */
const SETUP_LOOK_MS = 1_000;

interface Finding {
  readonly name: string;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly signal: AbortSignal;
}

/**
 * The program of a launch; undefined: it never came to be. Its setup lines are waited for, because who starts another
 * beside them has two. Throws `run.interrupted` where the worker ends meanwhile.
 */
export async function findStarted(finding: Finding, record: LaunchRecord): Promise<ProcessIdentity | undefined> {
  const { name, machine, clock, emit, signal } = finding;
  if (record.identity !== undefined) return record.identity;
  for (let isTold = false; ; isTold = true) {
    const found = await findLaunched(machineOfLaunch(machine, record), record);
    if (found.kind === 'running' || found.kind === 'ended') return found.identity;
    if (found.kind !== 'setting-up') return undefined;
    const says = `launch ${record.n} was begun by an Aerie that is gone; its setup lines still run`;
    if (!isTold) emit({ kind: 'launch.phase', subject: name, facts: { launch: record.n, phase: '', says } });
    await clock.sleep(SETUP_LOOK_MS, signal);
    if (signal.aborted)
      throw new AerieError('run.interrupted', `Stopped waiting for the setup lines of ${name}, which go on.`, {
        remedy: 'The same command waits for them again; aerie server stop ends them.',
      });
  }
}

/** Whom to end: the program, or the shell in which its setup lines still run. */
export async function findToStop(machine: Machine, record: LaunchRecord): Promise<ProcessIdentity | undefined> {
  if (record.identity !== undefined) return record.identity;
  const found = await findLaunched(machineOfLaunch(machine, record), record);
  if (found.kind === 'setting-up') return found.shell;
  return found.kind === 'running' || found.kind === 'ended' ? found.identity : undefined;
}
