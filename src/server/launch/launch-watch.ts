/**
 * Watches one launch from its start to its end: reads its log on, looks at its processes, its port and its counters, and lets
 * `judgeLook` say what that means. It acts on nothing: whoever waits for `over` does.
 *
 * What moves it: time alone. A look never waits long for a server that does not answer.
 */

import type { Account } from '../../diagnosis/account.ts';
import { describeProgress } from '../../diagnosis/live/describe-progress.ts';
import { judgeLook, keepLooks, type LookInput } from '../../diagnosis/live/judge-look.ts';
import { type LiveVerdict, type Look, logSigns, type ProcessSigns } from '../../diagnosis/live/look.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { LogFollower } from './follow-log.ts';
import type { LaunchRecord } from './launch-book.ts';
import type { LogMirror } from './mirror-log.ts';
import { GpuSigns, signsOf } from './process-signs.ts';
import { type QuestionsOptions, WatchQuestions } from './watch-questions.ts';

export interface WatchOptions extends QuestionsOptions {
  readonly launch: LaunchRecord;
  readonly machine: Machine;
  /** The way to that port; while it is lost nothing is asked, because no answer would be the server's. */
  readonly reach: Pick<Reach, 'isOpen'>;
  /** Requests of this worker: those that it has not answered, and those that it has. */
  readonly asked: () => { readonly inFlight: number; readonly answered: number };
  /** Has the log go on where its writer is gone and what it wrote for lives. */
  readonly keepLog?: () => Promise<void>;
  readonly onLook: (verdict: LiveVerdict, progress: string) => void;
  /** Asks the capacity model about a remedy. */
  readonly checkRemedy?: LookInput['checkRemedy'];
  /** Its log is kept here too. */
  readonly mirror?: LogMirror;
}

/** Between two looks: a start is followed closely, a server at work is disturbed little. */
export const LOOK_EVERY_MS = { starting: 2_000, working: 5_000 } as const;

export class LaunchWatch {
  readonly #options: WatchOptions;
  readonly #log: LogFollower;
  readonly #questions: WatchQuestions;
  readonly #gpus: GpuSigns;
  #looks: readonly Look[] = [];
  #verdict: LiveVerdict | undefined;

  constructor(options: WatchOptions) {
    const { machine, launch, dialect, mirror } = options;
    this.#options = options;
    this.#log = new LogFollower(machine, launch.logPath, dialect.name === 'vllm' ? 'vllm' : 'sglang', mirror);
    this.#questions = new WatchQuestions(options);
    this.#gpus = new GpuSigns(machine);
  }

  get verdict(): LiveVerdict | undefined {
    return this.#verdict;
  }

  get account(): Account {
    return this.#log.account();
  }

  get logFacts(): LogFacts {
    return this.account.facts;
  }

  /** Something answers on its port. */
  get isListening(): boolean {
    return this.#questions.isListening;
  }

  /** Looks until the server is over (crashed, hung, gone) or the signal aborts; undefined: it was the signal. */
  async untilOver(signal: AbortSignal): Promise<LiveVerdict | undefined> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const verdict = await this.look();
      if (signal.aborted) break;
      if (isOver(verdict)) return verdict;
      const isWorking = verdict.state === 'ready' || verdict.state === 'serving';
      await clock.sleep(isWorking ? LOOK_EVERY_MS.working : LOOK_EVERY_MS.starting, signal);
    }
    return undefined;
  }

  async look(): Promise<LiveVerdict> {
    const { clock, asked, onLook, checkRemedy } = this.#options;
    const [process] = await Promise.all([this.#lookAtProcess(), this.#askServer()]);
    await this.#options.keepLog?.();
    // After the process: what it wrote before its end is then there.
    await this.#log.readOn();
    const account = this.#log.account();
    const look: Look = {
      atMs: clock.elapsed(),
      ...logSigns(account),
      process,
      health: this.#questions.healthFor(account.ready !== undefined),
      counters: this.#questions.counters,
      asked: asked(),
    };
    this.#looks = keepLooks(this.#looks, look);
    const verdict = judgeLook({ account, looks: this.#looks, ...(checkRemedy === undefined ? {} : { checkRemedy }) });
    this.#verdict = verdict;
    onLook(verdict, describeProgress(account, this.#looks, this.#gpus.totalMiB));
    return verdict;
  }

  close(): void {
    this.#questions.close();
  }

  async #askServer(): Promise<void> {
    if (this.#options.reach.isOpen()) await this.#questions.ask({ health: true, counters: true });
  }

  async #lookAtProcess(): Promise<ProcessSigns | undefined> {
    const { machine, launch } = this.#options;
    if (launch.identity === undefined) return undefined;
    const isStarting = this.#verdict === undefined || this.#verdict.state === 'initializing';
    if (isStarting) await this.#gpus.look();
    return signsOf(await machine.look(launch.identity, launch), this.#gpus.usedMiB);
  }
}

/** Nothing more will come of it by itself. */
export function isOver({ state }: LiveVerdict): boolean {
  return state === 'crashed' || state === 'hung' || state === 'stopped' || state === 'absent';
}
