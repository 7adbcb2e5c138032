/**
 * Where a start is played: its phase, its clock, its log, and the faults that a scenario has for its phases.
 *
 * Promises: waiting costs nothing (one timer); a fault of a phase strikes once, at its time in the phase, and no line of the
 * start comes after it. A hang keeps the process and says nothing more.
 */
import { closeSync, openSync } from 'node:fs';
import type { EngineLaunch } from '../../../capacity/engine-launch.ts';
import type { Phase } from '../../../diagnosis/verdict.ts';
import type { LookalikeClock } from '../clock.ts';
import type { Fault, Scenario } from '../scenario.ts';
import { type Line, type Pids, processOf, shortTime, wrapLine } from './envelope.ts';

export interface Stage {
  readonly clock: LookalikeClock;
  phase(): Phase | 'draining';
  /** Begins a phase; the answer is its length in seconds: the scenario's, else the one given. */
  enter(phase: Phase, seconds: number): number;
  drain(): void;
  /** Seconds of this clock. A fault of the phase that falls into them strikes instead. */
  wait(seconds: number): Promise<void>;
  say(text: string, more?: Omit<Line, 'text'>): void;
  /** As it stands, without time: a progress bar, a traceback. */
  write(text: string): void;
  /** Time by this clock. */
  wall(): Date;
  /** What vLLM writes before every line of that process, past its logger. */
  lead(who: Pick<Line, 'rank' | 'isCore'>): string;
  /** vLLM's level and time of a line that no process has marked yet. */
  stamp(level: string): string;
}

export interface StageRequest {
  readonly clock: LookalikeClock;
  readonly scenario: Scenario;
  readonly launch: () => EngineLaunch;
  readonly pids: () => Pids;
  /** What the phase-less faults do not do: ends the launch as the fault says. */
  strike(fault: StartFault): void;
}

export type StartFault = Extract<Fault, { do: 'die' | 'hang' | 'slow' | 'oom' | 'fail' }>;

export function isOfStart(fault: Fault): fault is StartFault {
  return 'phase' in fault.when && fault.when.phase !== undefined;
}

/** Longer than anybody waits: it only keeps the process. */
const FOREVER_MS = 2 ** 31 - 1;

export function openStage({ clock, scenario, launch, pids, strike }: StageRequest): Stage {
  const startedAt = Date.now();
  const faults = scenario.faults.filter(isOfStart);
  let phase: Phase | 'draining' = 'model-import';
  let due: { fault: StartFault; atMs: number }[] = [];
  const wall = () => new Date(startedAt + clock.elapsed());
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));

  async function wait(seconds: number): Promise<void> {
    const endsAt = clock.elapsed() + seconds * 1000;
    const [next] = due.filter(({ atMs }) => atMs <= endsAt).sort((a, b) => a.atMs - b.atMs);
    if (next === undefined) return sleep(endsAt - clock.elapsed());
    due = due.filter((one) => one !== next);
    await sleep(next.atMs - clock.elapsed());
    if (isFirst(next.fault)) {
      if (next.fault.do === 'slow') await sleep(next.fault.ms);
      else if (next.fault.do === 'hang') await stand();
      else strike(next.fault);
    }
    return wait(Math.max(0, (endsAt - clock.elapsed()) / 1000));
  }

  return {
    clock,
    phase: () => phase,
    enter(next, seconds) {
      phase = next;
      const since = clock.elapsed();
      due = faults
        .filter(({ when }) => when.phase === next)
        .map((fault) => ({ fault, atMs: since + (fault.when.afterMs ?? 0) + (fault.do === 'die' ? fault.ms : 0) }));
      return next === 'serving' ? seconds : (scenario.phases[next]?.seconds ?? seconds);
    },
    drain() {
      phase = 'draining';
    },
    wait,
    say: (text, more = {}) => process.stderr.write(`${wrapLine(launch(), wall(), { text, ...more }, pids())}\n`),
    write: (text) => process.stderr.write(text),
    wall,
    lead: (who) => (launch().engine === 'vllm' ? processOf(launch(), { text: '', ...who }, pids()) : ''),
    stamp: (level) => `${level} ${shortTime(wall())}`,
  };
}

/** Never comes back. */
export function stand(): Promise<never> {
  return new Promise(() => void setInterval(() => undefined, FOREVER_MS));
}

/** With `once`, only the life that makes the file is struck. */
function isFirst({ once }: StartFault): boolean {
  if (once === undefined) return true;
  try {
    closeSync(openSync(once, 'wx'));
    return true;
  } catch {
    return false;
  }
}
