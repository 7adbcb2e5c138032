/**
 * Which fault strikes which request. Faults are looked at in their order; the first that is due strikes, and only one.
 *
 * Two kinds of fault are a state rather than a stroke: `health-503` holds for `/health` while it is due, and
 * `health-lies` holds every request that is due while `/health` goes on answering 200.
 */
import type { LookalikeClock } from './clock.ts';
import type { Fault, When } from './scenario.ts';

/** What a request says: in all its messages, and in the last. */
export interface Said {
  readonly promptText: string;
  readonly lastText: string;
}

export interface FaultTable {
  /** The fault that strikes this request, if any. Counts it. */
  strike(request: number, said: Said): Fault | undefined;
  /** What `/health` says now, with `received` requests received so far. Counts a 503. */
  healthStatus(received: number): 200 | 503;
  add(fault: Fault): void;
  /** Forgets all faults; what is already held or hanging stays so. */
  clear(): void;
  /** Strokes so far, 503s of `/health` included. */
  struck(): number;
}

interface Entry {
  readonly fault: Fault;
  left: number;
}

/** Faults of the whole engine that a request, a time or nothing at all sets off. */
export type StateFault = Extract<Fault, { do: 'scheduler-hangs' | 'schedulers-die' }>;

const isStateFault = (fault: Fault): fault is StateFault => fault.do === 'scheduler-hangs' || fault.do === 'schedulers-die';

/** `die` with a time and no request strikes by the clock, through `dieAtTime`. */
export function openFaultTable(
  faults: readonly Fault[],
  clock: LookalikeClock,
  dieAtTime: (exitCode: number | undefined) => void,
  stateBegins: (fault: StateFault) => void = () => undefined,
): FaultTable {
  let entries: Entry[] = [];
  let timers: (() => void)[] = [];
  let strokes = 0;

  function add(fault: Fault): void {
    if (fault.do === 'die' && strikesByClock(fault.when)) {
      timers.push(clock.after((fault.when.afterMs ?? 0) + fault.ms - clock.elapsed(), () => dieAtTime(fault.exitCode)));
    } else if (isStateFault(fault) && strikesByClock({ afterMs: 0, ...fault.when })) {
      timers.push(clock.after((fault.when.afterMs ?? 0) - clock.elapsed(), () => begin(fault)));
    } else {
      entries.push({ fault, left: fault.times ?? Number.POSITIVE_INFINITY });
    }
  }
  function begin(fault: StateFault): void {
    strokes += 1;
    stateBegins(fault);
  }
  function count(entry: Entry | undefined): Fault | undefined {
    if (entry === undefined) return undefined;
    entry.left -= 1;
    strokes += 1;
    return entry.fault;
  }

  for (const fault of faults) add(fault);
  return {
    strike(request, said) {
      const moment = { request, ...said, elapsed: clock.elapsed() };
      const struck = count(entries.find(({ fault, left }) => left > 0 && fault.do !== 'health-503' && isDue(fault.when, moment)));
      if (struck !== undefined && isStateFault(struck)) stateBegins(struck);
      return struck;
    },
    healthStatus(received) {
      const sick = entries.find(
        ({ fault, left }) => left > 0 && fault.do === 'health-503' && holds(fault.when, received, clock.elapsed()),
      );
      return count(sick) === undefined ? 200 : 503;
    },
    add,
    clear() {
      for (const cancel of timers) cancel();
      timers = [];
      entries = [];
    },
    struck: () => strokes,
  };
}

interface Moment extends Said {
  readonly request: number;
  readonly elapsed: number;
}

function isDue(when: When, { request, promptText, lastText, elapsed }: Moment): boolean {
  if (when.request !== undefined && request !== when.request) return false;
  if (when.everyNth !== undefined && request % when.everyNth !== 0) return false;
  if (when.contains !== undefined && !promptText.includes(when.contains)) return false;
  if (when.lastContains !== undefined && !lastText.includes(when.lastContains)) return false;
  return isInside(request, when.fromRequest, when.toRequest) && isInsideTime(elapsed, when);
}

/** Like `isDue`, for a state: `request: N` holds from the Nth request on. */
function holds(when: When, received: number, elapsed: number): boolean {
  return isInside(received, when.fromRequest ?? when.request, when.toRequest) && isInsideTime(elapsed, when);
}

function isInside(request: number, from = 0, to = Number.POSITIVE_INFINITY): boolean {
  return request >= from && request <= to;
}

function isInsideTime(elapsed: number, { afterMs = 0, untilMs = Number.POSITIVE_INFINITY }: When): boolean {
  return elapsed >= afterMs && elapsed < untilMs;
}

function strikesByClock(when: When): boolean {
  const { afterMs, ...others } = when;
  return afterMs !== undefined && Object.values(others).every((condition) => condition === undefined);
}
