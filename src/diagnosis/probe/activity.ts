/**
 * What a server does for others, by its log and by two readings of its counters. Pure.
 * Promise: what probes cause is no activity, neither Aerie's own health checks nor anybody's: a token each, and lines of the log.
 */
import { formatCount, formatDuration } from '../../base/units.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import { hasWorked } from '../account-view.ts';
import { START_SIGNS } from '../live/movement.ts';
import { type Counted, countTokens } from './count-tokens.ts';
import type { Activity, ProbeEvidence, Reading } from './evidence.ts';
import { looksOf } from './looks.ts';
import { probeLinesAtEnd, quietOf } from './since-when.ts';

/** A line of work that is older says nothing of now: SGLang prints each 40 steps, vLLM each 10 s. */
const RECENT_MS = 60_000;

export function activityOf(evidence: ProbeEvidence): Activity {
  const { readings } = evidence;
  const [first, last] = [readings[0], readings.at(-1)];
  if (first === undefined || last === undefined) return nothing('unknown', ['nothing could be read']);
  const counted = countTokens(evidence, first, last);
  const lastWork = workOf(evidence, last);
  const probes = probeLinesAtEnd(last.account);
  const overMs = last.atMs - first.atMs;
  const kind = kindOf(evidence, { first, last, counted, lastWork, probes });
  const says = [
    ...sayTokens(counted, overMs),
    ...sayGauges(last.counters),
    ...(lastWork === undefined ? [] : [`the last work in the log is line ${lastWork.line}${sayAgo(lastWork.agoMs)}`]),
    ...(probes === 0
      ? []
      : [`the last ${probes === 1 ? 'line of the log is' : `${probes} lines of the log are`} of probes, and no activity`]),
  ];
  return {
    ...{ kind, says: says.length === 0 ? [otherwise(kind, last)] : says },
    ...{ generatedTokens: counted.generated, promptTokens: counted.prompted, overMs },
    ...{ running: last.counters?.running, waiting: last.counters?.waiting, lastWork },
  };
}

function otherwise(kind: Activity['kind'], { account }: Reading): string {
  if (kind === 'starting') return 'it loads: the two readings differ';
  return account.lines === 0
    ? 'neither counters nor a log could be read'
    : 'no line of its log is work, and its counters could not be read';
}

interface Seen {
  readonly first: Reading;
  readonly last: Reading;
  readonly counted: Counted;
  readonly lastWork: Activity['lastWork'];
  readonly probes: number;
}

function kindOf(evidence: ProbeEvidence, { first, last, counted, lastWork, probes }: Seen): Activity['kind'] {
  const { account, counters } = last;
  const { running = 0, waiting = 0 } = counters ?? {};
  const isReady = account.ready !== undefined || hasWorked(account);
  const isCounted = (counted.generated ?? 0) + (counted.prompted ?? 0) > 0 || running > 0;
  const isLogged = (account.lastProgress?.line ?? 0) > (first.account.lastProgress?.line ?? 0) || isRecent(lastWork);
  if (isCounted || (isReady && isLogged)) return 'working';
  if (!isReady && counters === undefined && movesInStart(evidence)) return 'starting';
  if (probes > 0 || counted.isOwn) return 'probes';
  if (counters?.running === 0 && waiting === 0) return 'idle';
  return counters !== undefined || account.lines > 0 ? 'none' : 'unknown';
}

function isRecent(work: Activity['lastWork']): boolean {
  return work?.agoMs !== undefined && work.agoMs <= RECENT_MS;
}

function sayTokens({ generated, prompted, isOwn }: Counted, overMs: number): string[] {
  if (generated === undefined && prompted === undefined) return [];
  if (isOwn) return ['the counters moved by this probe’s own health check alone'];
  const parts = [
    ...(generated === undefined ? [] : [`${formatCount(generated)} generated`]),
    ...(prompted === undefined ? [] : [`${formatCount(prompted)} of prompts`]),
  ];
  return [`tokens counted in ${formatDuration(overMs)}: ${parts.join(', ')}`];
}

function sayGauges(counters: EngineCounters | undefined): string[] {
  if (counters?.running === undefined && counters?.waiting === undefined) return [];
  return [`running ${counters.running ?? 'unknown'}, queued ${counters.waiting ?? 'unknown'}`];
}

function workOf(evidence: ProbeEvidence, { account }: Reading): Activity['lastWork'] {
  const work = account.work.findLast(
    ({ isProbe, generated, prompted, running }) => !isProbe && generated + prompted + running > 0,
  );
  const { last } = account.answers;
  const found = (work?.line ?? 0) >= (last?.line ?? 0) ? work : last;
  // SGLang's warm-up asks itself before it says that it is ready.
  if (found === undefined || found.line <= (account.ready?.line ?? 0)) return undefined;
  const isLast = found.line >= (account.lastProgress?.line ?? 0);
  return { line: found.line, text: found.text.slice(0, 500), agoMs: isLast ? quietOf(evidence).progressMs : undefined };
}

export function sayAgo(ms: number | undefined): string {
  return ms === undefined ? '' : `, ${formatDuration(ms)} ago`;
}

/** Anything of a start moved between the readings. */
export function movesInStart(evidence: ProbeEvidence): boolean {
  const [first, last] = looksOf(evidence).slice(-2);
  if (first === undefined || last === undefined || evidence.readings.length < 2) return false;
  const moved = START_SIGNS.some(({ read, step }) => {
    const [before, after] = [read(first), read(last)];
    return before !== undefined && after !== undefined && Math.abs(after - before) >= step;
  });
  return moved || (last.process?.compilers ?? 0) > 0;
}

function nothing(kind: Activity['kind'], says: readonly string[]): Activity {
  return {
    ...{ kind, says, generatedTokens: undefined, promptTokens: undefined, overMs: 0 },
    ...{ running: undefined, waiting: undefined, lastWork: undefined },
  };
}
