/**
 * A server that has been ready. Pure. What counts is whether tokens move while requests wait: an open port and a health of 200
 * excuse nothing, a health check without an answer proves nothing while tokens move, and a server that nobody asks is never hung.
 */
import { formatDuration } from '../../base/units.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import type { Account } from '../account.ts';
import { COMPILING_LIMIT } from '../phases.ts';
import type { Verdict } from '../verdict.ts';
import { sayMovement } from './judge-starting.ts';
import type { LiveVerdict, Look } from './look.ts';
import { lastCounters, lastMoved, type Movement, movements, since, WORK_SIGNS } from './movement.ts';
import { type Change, change, isSick, isWell, type LookInput, logVerdict, sayHealth } from './view.ts';

/** SGLang's watchdog without a flag, in seconds. */
const WATCHDOG_S = 300;
/** It fires after its time to half of it more; then it writes stacks, which are worth waiting for. */
const WATCHDOG_LATE = 1.5;
const STACKS_MS = 30_000;
/** Workers are seen to be gone in two looks of half a minute: one look may fall between two processes. */
const WORKERS_GONE_MS = 60_000;
/** A health check waits 20 s and is asked each few seconds: what moved within a minute is at work. */
const RECENT_MS = 60_000;

export function workLimitOf({ facts, compiling }: Account): number {
  const watchdog = Number(facts.arguments['watchdog_timeout'] ?? WATCHDOG_S);
  const limit = (watchdog > 0 ? watchdog : WATCHDOG_S) * 1000 * WATCHDOG_LATE + STACKS_MS;
  return compiling === undefined ? limit : Math.max(limit, COMPILING_LIMIT);
}

interface Serving {
  readonly input: LookInput;
  readonly look: Look;
  readonly log: Verdict;
  readonly all: readonly Movement[];
  readonly movedAt: number | undefined;
  readonly counters: EngineCounters | undefined;
  /** Since when requests wait without a break; undefined where none waits. */
  readonly waitsSince: number | undefined;
  readonly limitMs: number;
}

export function judgeServing(input: LookInput, look: Look): LiveVerdict {
  const { account, looks } = input;
  const all = movements(looks, WORK_SIGNS);
  const counters = lastCounters(looks);
  const serving: Serving = {
    ...{ input, look, all, counters },
    log: logVerdict(input, account, 0),
    movedAt: lastMoved(all)?.movedAt,
    waitsSince: since(withCounters(looks), ({ asked, counters: read }) => asked.inFlight > 0 || works(read)),
    limitMs: input.workLimitMs ?? workLimitOf(account),
  };
  return judgeWorkers(serving) ?? judgeTokens(serving) ?? judgePort(serving) ?? judgeWell(serving);
}

/** An idle SGLang writes its gauges anew each 30 s: what stands in them is not left over from long ago. */
function works(counters: EngineCounters | undefined): boolean {
  return (counters?.running ?? 0) > 0 || (counters?.waiting ?? 0) > 0;
}

/** Where a look could not read them, those of the look before. */
function withCounters(looks: readonly Look[]): Look[] {
  let last: EngineCounters | undefined;
  return looks.map((look) => {
    last = look.counters ?? last;
    return { ...look, counters: last };
  });
}

function stillSince(time: number, { movedAt, look }: Serving): number {
  return look.atMs - Math.max(time, movedAt ?? Number.NEGATIVE_INFINITY);
}

function tell(serving: Serving, to: Change, stillForMs: number, limitMs: number, first: readonly string[] = []): LiveVerdict {
  const { input, log, all, look, counters } = serving;
  const gauges = counters === undefined ? 'no counters could be read' : sayGauges(counters);
  const asked = `${sayOwn(look)} for an answer`;
  const signs = [...first, ...all.map((one) => sayMovement(one, look.atMs)), gauges, asked, sayHealth(look.health)];
  return change(input, log, to, { stillForMs, limitMs }, signs);
}

function sayOwn({ asked: { inFlight } }: Look): string {
  return inFlight === 1 ? '1 request of Aerie waits' : `${inFlight} requests of Aerie wait`;
}

function sayGauges({ running, waiting }: EngineCounters): string {
  return `running ${running ?? 'unknown'}, queued ${waiting ?? 'unknown'}`;
}

/** A front end whose schedulers are gone. */
function judgeWorkers(serving: Serving): LiveVerdict | undefined {
  const { looks } = serving.input;
  const goneSince = since(looks, ({ process }) => process?.presence === 'running' && process.children === 0);
  if (goneSince === undefined || !looks.some(({ process }) => (process?.children ?? 0) > 0)) return undefined;
  const stillForMs = stillSince(goneSince, serving);
  if (stillForMs <= WORKERS_GONE_MS) return undefined;
  const said = `the process has no children any more, for ${formatDuration(stillForMs)}`;
  const to: Change = { state: 'hung', phase: 'serving', code: causeOf(serving) ?? 'workers-gone', confidence: 'high' };
  return tell(serving, to, stillForMs, WORKERS_GONE_MS, [said]);
}

/** Tokens that stand while requests wait. */
function judgeTokens(serving: Serving): LiveVerdict | undefined {
  const { waitsSince, limitMs, counters, look } = serving;
  if (waitsSince === undefined || !canTell(serving)) return undefined;
  const stillForMs = stillSince(waitsSince, serving);
  if (stillForMs <= limitMs) return undefined;
  const admitsNone = counters?.running === 0 && (counters.waiting ?? 0) > 0;
  const code = causeOf(serving) ?? (admitsNone ? 'scheduler-not-admitting' : 'worker-stuck-no-progress');
  const waiting = look.asked.inFlight > 0 ? sayOwn(look) : 'requests of others wait';
  const said = `no token for ${formatDuration(stillForMs)} while ${waiting}; ${formatDuration(limitMs)} may pass`;
  return tell(serving, { state: 'hung', phase: 'serving', code, confidence: 'high' }, stillForMs, limitMs, [said]);
}

/** Without counters and without a log that shows work nobody knows whether tokens move. */
function canTell({ counters, input: { account } }: Serving): boolean {
  const isCounted = counters?.generatedTokens !== undefined || counters?.promptTokens !== undefined;
  return isCounted || account.work.length > 0 || account.answers.last !== undefined;
}

/** The log's own word for a hang, where it has one. */
function causeOf({ log }: Serving): string | undefined {
  return log.state === 'hung' ? log.cause : undefined;
}

/** It had been ready, and nobody answers. */
function judgePort(serving: Serving): LiveVerdict | undefined {
  const { look, limitMs, input, waitsSince } = serving;
  if (!isSick(look.health)) return undefined;
  const isClosed = look.health?.kind === 'refused';
  const sickSince = since(input.looks, ({ health }) => (isClosed ? health?.kind === 'refused' : isSick(health))) ?? look.atMs;
  // The port of a process that dies is closed before the process is gone: one look is no verdict yet.
  if (isClosed && sickSince === look.atMs) return undefined;
  const stillForMs = stillSince(sickSince, serving);
  // One step of a busy scheduler may outlast the health check.
  const moves = serving.movedAt !== undefined && look.atMs - serving.movedAt <= RECENT_MS;
  if (moves && !isClosed) return undefined;
  const code = causeOf(serving) ?? 'front-end-mute';
  const isKnown = look.process?.presence === 'running';
  // A closed port serves nobody. An open one that nobody asks for work may be a health check of its own kind.
  const isOver = stillForMs > limitMs && (isClosed || (waitsSince !== undefined && canTell(serving)));
  const state = !isOver ? 'unresponsive' : isKnown || !isClosed ? 'hung' : 'absent';
  const said = `${sayHealth(look.health)}, for ${formatDuration(look.atMs - sickSince)}; it had been ready`;
  const note = input.account.shutdown === undefined ? undefined : `Line ${input.account.shutdown.line}: it was asked to end.`;
  const stood = Math.max(stillForMs, waitsSince === undefined ? 0 : stillSince(waitsSince, serving));
  return tell(serving, { state, phase: 'serving', code, confidence: 'medium', note }, stood, limitMs, [said]);
}

function judgeWell(serving: Serving): LiveVerdict {
  const { log, look, waitsSince, limitMs, movedAt, counters } = serving;
  const stillForMs = waitsSince === undefined ? 0 : stillSince(waitsSince, serving);
  const moves = movedAt !== undefined && look.atMs - movedAt <= RECENT_MS;
  const isAtWork = waitsSince !== undefined || moves;
  const knowsRest = counters?.running !== undefined && look.asked.inFlight === 0;
  if (log.state === 'hung' && isAtWork) {
    const note = `Its log looks like a hang (${log.cause}); that is decided by tokens, which may stand for ${formatDuration(limitMs)}.`;
    const state = moves || stillForMs <= RECENT_MS ? 'serving' : 'unresponsive';
    const code = state === 'serving' ? 'none' : log.cause;
    return tell(serving, { state, phase: 'serving', code, confidence: 'medium', note }, stillForMs, limitMs);
  }
  if (!isAtWork && (knowsRest || log.state === 'hung' || log.state === 'initializing'))
    return tell(serving, { state: 'ready', phase: '', code: 'none', confidence: 'high' }, 0, limitMs);
  if (log.state === 'degraded' || log.state === 'serving') return tell(serving, { state: log.state }, stillForMs, limitMs);
  if (isAtWork) return tell(serving, { state: 'serving', phase: 'serving', code: 'none' }, stillForMs, limitMs);
  return tell(
    serving,
    { state: 'ready', phase: '', code: 'none', confidence: isWell(look.health) ? 'high' : 'medium' },
    0,
    limitMs,
  );
}
