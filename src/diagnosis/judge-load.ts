/**
 * What the readings of a server at work say. Pure. Low or zero throughput alone proves nothing: idle, one long request, long
 * prompts and endless thinking look alike; queue, cache and their trend tell them apart.
 */
import type { Account, Sighting, Work } from './account.ts';
import { median } from './median.ts';

export interface LoadJudgement {
  readonly code: string;
  readonly evidence: readonly Sighting[];
}

/** A minute of vLLM's lines: enough for a trend, short enough to be the present. */
const PRESENT = 6;
/** vLLM's cache is full at 95 % and more: the rest is blocks that are begun. */
const FULL = 0.95;
const NEARLY_FULL = 0.9;
/** More tokens than SGLang assumes of any answer when it admits one: such an answer is a long one. */
const LONG_ANSWER_TOKENS = 4096;
/** Prompts at this many times the pace of answers: hardly a step is left for answers. */
const PREFILL_SHARE = 20;

export function judgeLoad(account: Account): LoadJudgement | undefined {
  const readings = account.work.filter(({ kind, isProbe }) => kind === 'decode' && !isProbe);
  const present = readings.slice(-PRESENT);
  const last = present.at(-1);
  if (last === undefined) return undefined;
  const busyWithPrompts = judgePrefills(account, present);
  if (last.running === 0 && last.queued === 0) return undefined;
  for (const [code, fits] of JUDGES) if (fits(present, account)) return { code, evidence: present };
  return busyWithPrompts;
}

type Judge = (present: readonly Work[], account: Account) => boolean;

const JUDGES: readonly (readonly [string, Judge])[] = [
  ['scheduler-not-admitting', admitsNothing],
  ['worker-stuck-no-progress', standsStill],
  ['prefill-bound', isPrefillBound],
  ['long-request-blocks-queue', isBlockedByOne],
  ['kv-cache-saturated', isSaturated],
  ['max-num-seqs-cap', isCapped],
  ['throughput-collapse', hasCollapsed],
  ['request-runs-to-token-cap', isEndless],
];

function admitsNothing(present: readonly Work[]): boolean {
  const [before, last] = present.slice(-2);
  if (before === undefined || last === undefined) return false;
  const isEmpty = [before, last].every(({ running, queued, usage }) => running === 0 && queued > 0 && usage < 0.5);
  return isEmpty && last.queued >= before.queued && last.generated === 0 && last.prompted === 0;
}

function standsStill(present: readonly Work[]): boolean {
  // One request alone may wait for a kernel that is compiled; several that wait together, with a queue, less so.
  const last = present.at(-1);
  const needed = (last?.queued ?? 0) > 0 && (last?.running ?? 0) > 1 ? 2 : 3;
  const still = present.slice(-needed);
  const frozen = still.every(({ running, generated, prompted, usage }) => {
    return running > 0 && generated === 0 && prompted === 0 && usage === still[0]?.usage;
  });
  return still.length === needed && frozen;
}

function isPrefillBound(present: readonly Work[]): boolean {
  const [first, last] = [present[0], present.at(-1)];
  if (first === undefined || last === undefined || last.queued === 0) return false;
  const share = median(present.map(({ prompted, generated }) => prompted / Math.max(1, generated)));
  return share >= PREFILL_SHARE && last.queued <= first.queued && median(present.map(({ usage }) => usage)) < FULL;
}

/** SGLang prints a line for each prefill batch, and a decode line only each 40 steps: all prefill, and the queue falls. */
function judgePrefills({ work }: Account, present: readonly Work[]): LoadJudgement | undefined {
  const prefills = work.filter(({ kind, isProbe }) => kind === 'prefill' && !isProbe).slice(-2 * PRESENT);
  const [first, last] = [prefills[0], prefills.at(-1)];
  if (prefills.length < PRESENT || first === undefined || last === undefined) return undefined;
  const decodes = present.filter(({ line }) => line > first.line).length;
  if (decodes * 5 > prefills.length || last.queued === 0 || last.queued > first.queued) return undefined;
  return { code: 'prefill-bound', evidence: [first, last] };
}

function isBlockedByOne(present: readonly Work[]): boolean {
  return present.every(({ running, queued, usage }) => running >= 1 && running <= 2 && queued > 0 && usage >= 0.5);
}

function isSaturated(present: readonly Work[]): boolean {
  const waiting = present.filter(({ queued }) => queued > 0).length;
  const usage = present.map((work) => work.usage);
  return waiting * 2 > present.length && (Math.max(...usage) >= FULL || median(usage) >= NEARLY_FULL);
}

/** SGLang keeps room for answers to come, so that a queue beside free tokens is no cap unless its own limit is reached. */
function isCapped(present: readonly Work[], { facts }: Account): boolean {
  const running = present.map((work) => work.running);
  const most = Math.max(...running);
  if (most === 0 || present.some(({ queued, usage }) => queued === 0 || usage >= NEARLY_FULL)) return false;
  if (facts.engine === 'sglang') {
    const cap = facts.maxRunningRequests ?? Number(facts.arguments['max_running_requests'] ?? Number.NaN);
    return most >= cap;
  }
  return most - Math.min(...running) <= 1 && present.some(({ generated }) => generated > 0);
}

function hasCollapsed(present: readonly Work[]): boolean {
  const three = present.slice(-3);
  return (
    three.length === 3 &&
    three.every(({ running, queued, usage, generated, prompted }) => {
      return running > 0 && queued === 0 && usage < 0.5 && prompted === 0 && generated > 0 && generated < running;
    })
  );
}

/** One request alone, all the time, and its answer is already a long one. */
function isEndless(_: readonly Work[], { work, answers }: Account): boolean {
  const alone: Work[] = [];
  for (let back = work.length - 1; back >= 0; back--) {
    const one = work[back] as Work;
    if (one.running !== 1 || one.queued !== 0 || (one.kind === 'prefill' && !one.isProbe)) break;
    alone.unshift(one);
    // The interval in which its prompt was computed is its first.
    if (one.prompted > 0) break;
  }
  const [first, last] = [alone[0], alone.at(-1)];
  if (alone.length < 3 || first === undefined || last === undefined) return false;
  if (answers.last !== undefined && answers.last.line > first.line) return false;
  if (first.at === undefined || last.at === undefined) return false;
  const seconds = (last.at - first.at) / 1000;
  return seconds * median(alone.map(({ generated }) => generated)) >= LONG_ANSWER_TOKENS;
}

/** Retractions in more than one of a hundred decode steps: one decode line stands for 40 steps. */
const RETRACTIONS_PER_LINE = 0.4;

export function judgeRetractions({ retractions, work }: Account): Sighting[] | undefined {
  const decodes = work.filter(({ kind }) => kind === 'decode');
  const since = decodes[0]?.line ?? 0;
  // Every rank prints its own line of one retraction.
  const apart = new Map(
    retractions.filter(({ line }) => line >= since || decodes.length === 0).map((one) => [String(one.at ?? one.line), one]),
  );
  if (apart.size === 0 || apart.size < RETRACTIONS_PER_LINE * decodes.length) return undefined;
  return [...apart.values()];
}
