/**
 * The two readings of a probe as looks of a watcher, so that one judge decides for both. Pure. What the log tells about the time before the
 * probe becomes looks of their own, at the log alone: a probe did not watch for an hour, and the log has its times.
 */
import type { EngineCounters } from '../../engine/counters.ts';
import type { Account } from '../account.ts';
import { hasWorked } from '../account-view.ts';
import { type Look, logSigns } from '../live/look.ts';
import { countTokens } from './count-tokens.ts';
import type { ProbeEvidence, Reading } from './evidence.ts';
import { quietOf } from './since-when.ts';

const NOT_ASKED = { inFlight: 0, answered: 0 };

export function looksOf(evidence: ProbeEvidence): Look[] {
  const { readings } = evidence;
  const [first, last] = [readings[0], readings.at(-1)];
  if (first === undefined || last === undefined) return [];
  const own = first !== last && countTokens(evidence, first, last).isOwn;
  return [
    ...before(evidence, first, last),
    ...readings.map((reading) => ({
      atMs: reading.atMs,
      ...logSigns(reading.account),
      process: reading.process,
      health: evidence.health,
      counters: own && reading === last ? withoutOwn(reading, first) : reading.counters,
      asked: NOT_ASKED,
    })),
  ];
}

/** Oldest first: before the last sign of progress, at it, and when something was last written. */
function before(evidence: ProbeEvidence, first: Reading, last: Reading): Look[] {
  const { writtenMs, progressMs } = quietOf(evidence);
  const { logBytes, logProgress } = logSigns(first.account);
  const look = (agoMs: number, signs: Pick<Look, 'logBytes' | 'logProgress'>, counters?: EngineCounters): Look => ({
    ...{ atMs: Math.min(first.atMs, last.atMs - agoMs), ...signs, process: undefined, health: undefined, counters },
    asked: NOT_ASKED,
  });
  const past: Look[] = [];
  const oldest = Math.max(writtenMs ?? 0, progressMs ?? 0);
  // That it became ready is progress of a start, and no work.
  const isWork = first.account.lastProgress?.line !== first.account.ready?.line && hasWorked(first.account);
  if (progressMs !== undefined && isWork) {
    past.push(look(oldest + 1, { logBytes: 0, logProgress: Math.max(0, logProgress - 1) }));
    past.push(look(progressMs, { logBytes: 1, logProgress }, waitingThen(first.account)));
  }
  if (writtenMs !== undefined) {
    if (past.length === 0) past.push(look(writtenMs + 1, { logBytes: 0, logProgress }));
    past.push(look(writtenMs, { logBytes, logProgress }));
  }
  return past.sort((a, b) => a.atMs - b.atMs);
}

/** The last line of work says who waited then; the log has no word of anybody's end since. */
function waitingThen({ work }: Account): EngineCounters | undefined {
  const last = work.findLast(({ isProbe }) => !isProbe);
  if (last === undefined || last.running + last.queued === 0) return undefined;
  return { generatedTokens: undefined, promptTokens: undefined, running: last.running, waiting: last.queued };
}

function withoutOwn({ counters }: Reading, first: Reading): EngineCounters | undefined {
  if (counters === undefined || first.counters === undefined) return counters;
  const { generatedTokens, promptTokens } = first.counters;
  return { ...counters, generatedTokens, promptTokens };
}
