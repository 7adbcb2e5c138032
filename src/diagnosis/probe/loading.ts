/** It is loading, and slow: a start has no fixed time. Pure. */
import { formatDuration } from '../../base/units.ts';
import type { Account } from '../account.ts';
import { hasWorked } from '../account-view.ts';
import { limitOf } from '../judge-silence.ts';
import type { ProbeHypothesis } from './evidence.ts';
import { about, answered, moves, sayStill, type View, when } from './view.ts';

export function loading(view: View): ProbeHypothesis {
  const { account, evidence, quiet, isReady, isGone } = view;
  const { health, process, log } = evidence;
  const { progress, phaseBegan, compiling, secondsEach, phase } = account;
  const limitMs = limitOf(account);
  const quietMs = quiet.writtenMs ?? 0;
  const isStill = quietMs > limitMs;
  const moved = moves(view);
  const reasons = [
    ...about(phaseBegan, ({ line }) => `line ${line}: ${phase} began`),
    ...about(progress, ({ done, of }) => `it is at ${done} of ${of}${pace(secondsEach)}`),
    ...about(compiling, ({ line }) => `line ${line}: a kernel is being compiled, which takes 10–20 min the first time`),
    ...moved,
    ...when(
      quiet.writtenMs !== undefined && !isStill,
      () => `its log was written to ${formatDuration(quietMs)} ago; this phase may be silent for ${formatDuration(limitMs)}`,
    ),
    ...about(
      process?.ageMs,
      (ms) => `started ${formatDuration(ms)} ago; a start has no fixed time, it is slow while something moves`,
    ),
    ...when(health?.kind === 'refused', () => 'a closed port is usual: engines open it last'),
    ...when(answered(view, 503), () => 'health says 503, as before and during its warm-up'),
  ];
  const against = [
    ...readiness(account),
    ...when(isGone, () => 'its process is gone'),
    ...when(answered(view, 200), () => 'health: 200'),
    ...when(isStill && moved.length === 0, () => sayStill(quietMs, limitMs)),
    ...when(log === undefined && process === undefined, () => 'neither a log nor a process of it was seen'),
  ];
  // Of a server that is nowhere to be seen nothing speaks for anything.
  const isNowhere = log === undefined && process === undefined && health?.kind !== 'http';
  return { name: 'loading', for: isReady || isGone || isNowhere ? [] : reasons, against };
}

function readiness(account: Account): string[] {
  const work = account.answers.last ?? account.work.at(-1);
  if (account.ready !== undefined) return [`line ${account.ready.line}: it said that it is ready`];
  return hasWorked(account) && work !== undefined ? [`line ${work.line}: it has worked`] : [];
}

function pace(secondsEach: number | undefined): string {
  return secondsEach === undefined || secondsEach < 1 ? '' : `, ${Math.round(secondsEach)} s each`;
}
