/** How often a server may be started again. Pure. */
import { launchKey } from './changes.ts';
import type { LaunchTry, RecoveryQuestion } from './recovery.ts';

/**
 * A large model loads in 5 to 15 minutes, so five launches are up to an hour without an answer; and there are hardly more kinds of change
 * than that (caps, prefill size, fraction, host cache, environment).
 */
export const MOST_TRIES = 5;
/** Appendix of the field's rules: the same flags at most twice in 30 minutes, and only for causes that pass. */
const SAME_FLAGS_MOST = 2;
export const SAME_FLAGS_WINDOW_MS = 30 * 60_000;
/** An hour of service with many answers shows that the launch is sound: what ends it then is another matter. */
const SERVED_WELL_MS = 60 * 60_000;
const SERVED_WELL_ANSWERS = 100;
/** A listening port is free at once, a half-closed one after 60 s; drivers give memory back within the same time. */
export const FIRST_PAUSE_MS = 15_000;
export const LATER_PAUSE_MS = 60_000;

function servedWell({ wasReady, answered, readyAt, endedAt }: LaunchTry): boolean {
  return wasReady && answered >= SERVED_WELL_ANSWERS && readyAt !== undefined && endedAt - readyAt >= SERVED_WELL_MS;
}

/** The tries that count: since the last one that served well, with it. */
export function countedTries(tries: readonly LaunchTry[]): readonly LaunchTry[] {
  const sound = tries.findLastIndex(servedWell);
  return sound === -1 ? tries : tries.slice(sound);
}

/** How often the flags of the last try have been started again already, one after the other: in the window, and at all. */
export function countRepeats({ engine, tries }: RecoveryQuestion): { readonly inWindow: number; readonly atAll: number } {
  const counted = countedTries(tries);
  const last = counted.at(-1);
  if (last === undefined) return { inWindow: 0, atAll: 0 };
  const key = launchKey(engine, last.flags, last.env);
  const same = counted.filter((one) => launchKey(engine, one.flags, one.env) === key);
  const inWindow = same.filter(({ endedAt }) => last.endedAt - endedAt <= SAME_FLAGS_WINDOW_MS);
  return { inWindow: inWindow.length - 1, atAll: same.length - 1 };
}

/** Appendix of the field's rules: only causes that may pass, and never what has failed hopelessly before. */
export function mayRepeat(question: RecoveryQuestion): boolean {
  const { engine, tries } = question;
  const last = tries.at(-1);
  if (last === undefined) return false;
  const { restartSameFlagsHelps } = last.verdict;
  const key = launchKey(engine, last.flags, last.env);
  const isHopeless = tries.some(
    (one) => one.verdict.restartSameFlagsHelps === false && launchKey(engine, one.flags, one.env) === key,
  );
  if (isHopeless) return false;
  const { inWindow, atAll } = countRepeats(question);
  return restartSameFlagsHelps === true ? inWindow < SAME_FLAGS_MOST : atAll < 1;
}

/** Whether waiting for memory may be tried again. */
export function mayWait(question: RecoveryQuestion): boolean {
  return countRepeats(question).inWindow < SAME_FLAGS_MOST;
}

export function pauseBefore(question: RecoveryQuestion): number {
  return countRepeats(question).atAll === 0 ? FIRST_PAUSE_MS : LATER_PAUSE_MS;
}
