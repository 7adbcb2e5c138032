/**
 * An engine that serves: its scheduler, its log and its figures, put together for the paths that answer.
 *
 *   alive ──► hung      the scheduler stands still, the port is open          (fault, or paused until /continue_generation)
 *         ──► zombie    the schedulers' processes are gone, the front end answers what it can
 */
import type { FlagValue } from '../../../engine/launch-flags.ts';
import type { StateFault } from '../faults.ts';
import type { EngineLife } from '../life.ts';
import type { Ended } from './scheduled-event.ts';
import { openScheduler, type Scheduler } from './scheduler.ts';
import { openWorkLog, type WorkLog } from './work-log.ts';

export interface Serving {
  readonly life: EngineLife;
  /** As the launcher took them, by the newest name of each. */
  readonly flags: Readonly<Record<string, FlagValue>>;
  readonly scheduler: Scheduler;
  readonly log: WorkLog;
  /** What `/health` says whatever there is: a front end that lies, or the constant one of a zombie. */
  lies: boolean;
  /** Its last health check had no answer; before 0.5.2 it never recovered from that. */
  isSick: boolean;
  /** `rid`: the client's own name for it. */
  submit(
    who: { readonly id: string; readonly rid: string | undefined },
    promptIds: readonly number[],
    maxTokens: number,
    answerTokens: number,
  ): Promise<Ended>;
  abort(rid: string): void;
  /** Requests that come from now on wait in the front end. */
  hold(): void;
  resume(): void;
  /** A fault of the whole engine begins. */
  fail(fault: StateFault): void;
}

export function openServing(life: EngineLife, flags: Serving['flags']): Serving {
  const scheduler: Scheduler = openScheduler({ life, onEvent: (event) => log.hear(event) });
  const log: WorkLog = openWorkLog({ life, poolTokens: scheduler.server.poolTokens, now: () => scheduler.now() });
  const byRid = new Map<string, string>();
  let waiting: (() => void)[] | undefined;
  let isBroken = false;
  const serving: Serving = {
    ...{ life, flags, scheduler, log, lies: false, isSick: false },
    async submit({ id, rid = id }, promptIds, maxTokens, answerTokens) {
      if (waiting !== undefined) await new Promise<void>((letGo) => waiting?.push(letGo));
      log.wake();
      byRid.set(rid, id);
      const ended = await scheduler.submit(id, promptIds, maxTokens, answerTokens);
      if (byRid.get(rid) === id) byRid.delete(rid);
      return ended;
    },
    abort(rid) {
      const id = byRid.get(rid);
      if (id !== undefined) scheduler.abort(id);
    },
    hold() {
      waiting ??= [];
    },
    resume() {
      if (!isBroken) scheduler.resume();
      const held = waiting ?? [];
      waiting = undefined;
      for (const letGo of held) letGo();
    },
    fail(fault) {
      isBroken = true;
      scheduler.hang();
      serving.lies ||= fault.do === 'schedulers-die' || fault.health === 'lies';
    },
  };
  return serving;
}

/** `M` of SGLang's refusals: prompt tokens must be below it. The pool bounds it as well as the context. */
export function longestPromptTokens({ life: { launch, prediction } }: Serving): number {
  return Math.min(launch.contextTokens - 1, prediction.poolTokens * launch.dcp - 1) - 5;
}

/** How many tokens an answer may have behind such a prompt; SGLang cuts what was asked for without a word. */
export function clipAnswer({ scheduler, life }: Serving, promptTokens: number, maxTokens: number): number {
  return Math.min(maxTokens, scheduler.longestRequestTokens - promptTokens, life.launch.contextTokens - 1 - promptTokens - 1);
}
