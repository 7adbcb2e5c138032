/** Whom a stop signals next, and what it says of those that stay. Pure; `stop-launch.ts` acts. */
import { insideOf } from '../machine/contained/inside.ts';
import { isLaunchShell } from '../machine/launch-script.ts';
import type { FamilyMember, ProcessIdentity, ProcessLook, SignalResult } from '../machine/machine.ts';

/** Why a member is still there after all that was done. */
export type LeftBecause =
  /** It has ended, and its parent has not reaped it. */
  | 'zombie'
  /** In the kernel, deaf to every signal until it returns. */
  | 'uninterruptible'
  /** It belongs to another user. */
  | 'not-permitted'
  /** It had SIGKILL and the kernel has not ended it yet. */
  | 'ending';

/** Members that run, the waiting shell aside: it ends by itself when the program has, and writes the exit status first. */
export function runningOf(look: ProcessLook, main: ProcessIdentity): FamilyMember[] {
  return look.family.filter(
    (member) => member.presence === 'running' && (isSameProcess(member, main) || !isLaunchShell(member.command)),
  );
}

/**
 * SIGTERM goes to the program, which ends its own children; where it is gone, to each that it left. A client (docker run, srun) ends
 * with its container or its step: that is told, and once.
 */
export function termTargets(look: ProcessLook, main: ProcessIdentity): FamilyMember[] {
  const running = runningOf(look, main);
  const insides = running.filter((member) => insideOf(member) !== undefined);
  if (insides.length > 0) return insides;
  const program = running.filter((member) => isSameProcess(member, main));
  return program.length > 0 ? program : running;
}

/**
 * SIGKILL goes to containers and steps and to the program first, so that nobody starts anew what was just ended. The waiting shell is ended when nobody
 * else is left and it does not go: then there is no exit status to lose.
 */
export function killTargets(look: ProcessLook, main: ProcessIdentity): FamilyMember[] {
  const running = runningOf(look, main);
  const isFirst = (member: FamilyMember) => insideOf(member) !== undefined || isSameProcess(member, main);
  return [...running.filter(isFirst), ...running.filter((member) => !isFirst(member))];
}

/** Nobody runs; zombies may be there. */
export function isOver(look: ProcessLook): boolean {
  return look.family.every(({ presence }) => presence === 'zombie');
}

export function leftBecause(member: FamilyMember, lastResult: SignalResult | undefined): LeftBecause {
  if (member.presence === 'zombie') return 'zombie';
  if (lastResult === 'not-permitted') return 'not-permitted';
  return member.isUninterruptible ? 'uninterruptible' : 'ending';
}

export function isSameProcess(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.pid === other.pid && one.startTicks === other.startTicks && one.bootId === other.bootId;
}
