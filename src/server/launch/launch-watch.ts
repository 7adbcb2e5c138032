/**
 * Watches one launch from its start to its end: reads its log on, looks at its processes, its port and its counters, and lets
 * `judgeLook` say what that means. It acts on nothing: whoever waits for `over` does.
 *
 * What moves it: time alone. A look never waits long for a server that does not answer.
 */

import type { Account } from '../../diagnosis/account.ts';
import { describeProgress } from '../../diagnosis/live/describe-progress.ts';
import { judgeLook, keepLooks, type LookInput } from '../../diagnosis/live/judge-look.ts';
import { type Health, type LiveVerdict, type Look, logSigns, type ProcessSigns } from '../../diagnosis/live/look.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import type { Dialect } from '../../engine/dialect.ts';
import type { Clock } from '../../host/host.ts';
import type { HttpClient } from '../../host/http.ts';
import { openTimeLimit } from '../../host/time-limit.ts';
import { insideOf } from '../../machine/contained/inside.ts';
import type { Machine, ProcessLook, Reach } from '../../machine/machine.ts';
import { AskBeside } from './ask-beside.ts';
import { askHealth } from './ask-health.ts';
import { LogFollower } from './follow-log.ts';
import type { LaunchRecord } from './launch-book.ts';
import type { LogMirror } from './mirror-log.ts';

export interface WatchOptions {
  readonly launch: LaunchRecord;
  readonly machine: Machine;
  readonly dialect: Dialect;
  /** To its port; for health and metrics alone. */
  readonly control: HttpClient;
  /** The way to that port; while it is lost nothing is asked, because no answer would be the server's. */
  readonly reach: Pick<Reach, 'isOpen'>;
  readonly clock: Clock;
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
const LOOK_EVERY_MS = { starting: 2_000, working: 5_000 } as const;
/** A look waits so long for health and counters, then takes what it last heard. */
const ANSWER_WITHIN_MS = 2_000;
/** nvidia-smi takes a second of a CPU on a machine of eight cards. */
const GPU_EVERY_LOOKS = 5;
const METRICS_TIMEOUT_MS = 25_000;

export class LaunchWatch {
  readonly #options: WatchOptions;
  readonly #log: LogFollower;
  readonly #ended = new AbortController();
  readonly #health: AskBeside<Health>;
  readonly #counters: AskBeside<EngineCounters | undefined>;
  #looks: readonly Look[] = [];
  #lookNumber = 0;
  #gpuUsedMiB: number | undefined;
  #gpuTotalMiB: number | undefined;
  #verdict: LiveVerdict | undefined;
  /** By the clock of the looks; undefined = its log has not said ready. */
  #readySince: number | undefined;

  constructor(options: WatchOptions) {
    const { machine, launch, dialect, control, clock, mirror } = options;
    this.#options = options;
    this.#log = new LogFollower(machine, launch.logPath, dialect.name === 'vllm' ? 'vllm' : 'sglang', mirror);
    const elapsed = () => clock.elapsed();
    this.#health = new AskBeside(() => askHealth(control, dialect.healthRequest, clock, this.#ended.signal), elapsed);
    this.#counters = new AskBeside(() => this.#askCounters(), elapsed);
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
    return this.#health.last?.kind === 'http';
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
    this.#lookNumber += 1;
    const [process] = await Promise.all([this.#lookAtProcess(), this.#askServer()]);
    await this.#options.keepLog?.();
    // After the process: what it wrote before its end is then there.
    await this.#log.readOn();
    const account = this.#log.account();
    const look: Look = {
      atMs: clock.elapsed(),
      ...logSigns(account),
      process,
      health: this.#healthFor(account.ready !== undefined),
      counters: this.#counters.last,
      asked: asked(),
    };
    this.#looks = keepLooks(this.#looks, look);
    const verdict = judgeLook({ account, looks: this.#looks, ...(checkRemedy === undefined ? {} : { checkRemedy }) });
    this.#verdict = verdict;
    onLook(verdict, describeProgress(account, this.#looks, this.#gpuTotalMiB));
    return verdict;
  }

  /** A refusal of a question from before the log said ready is no refusal of a ready server, however late it is heard. */
  #healthFor(isReady: boolean): Health | undefined {
    if (isReady) this.#readySince ??= this.#options.clock.elapsed();
    const { last, lastAskedAt } = this.#health;
    const isOld = this.#readySince !== undefined && lastAskedAt <= this.#readySince;
    return isOld && last?.kind === 'refused' ? undefined : last;
  }

  close(): void {
    this.#ended.abort();
  }

  async #askServer(): Promise<void> {
    const { clock, reach } = this.#options;
    if (!reach.isOpen()) return;
    const enough = new AbortController();
    const within = clock.sleep(ANSWER_WITHIN_MS, enough.signal);
    await Promise.all([this.#health.ask(within), this.isListening ? this.#counters.ask(within) : undefined]);
    enough.abort();
  }

  async #askCounters(): Promise<EngineCounters | undefined> {
    const { dialect, control, clock } = this.#options;
    if (dialect.metrics === undefined) return undefined;
    const limit = openTimeLimit(clock, METRICS_TIMEOUT_MS, this.#ended.signal);
    const reply = await control.send(dialect.metrics.request, limit.signal);
    limit.close();
    return reply.kind === 'http' ? dialect.metrics.parse({ status: reply.status, body: reply.body.take() }) : undefined;
  }

  async #lookAtProcess(): Promise<ProcessSigns | undefined> {
    const { machine, launch } = this.#options;
    if (launch.identity === undefined) return undefined;
    const isStarting = this.#verdict === undefined || this.#verdict.state === 'initializing';
    if (isStarting && this.#lookNumber % GPU_EVERY_LOOKS === 1) this.#gpuUsedMiB = await this.#readGpuMemory();
    return signsOf(await machine.look(launch.identity, launch), this.#gpuUsedMiB);
  }

  async #readGpuMemory(): Promise<number | undefined> {
    const look = await this.#options.machine.gpus();
    this.#gpuTotalMiB = look.kind === 'read' ? look.gpus.reduce((sum, { totalMiB }) => sum + totalMiB, 0) : undefined;
    return look.kind === 'read' ? look.gpus.reduce((sum, { usedMiB }) => sum + usedMiB, 0) : undefined;
  }
}

/** Exported for its test. */
export function signsOf(look: ProcessLook, gpuUsedMiB: number | undefined): ProcessSigns {
  const { main, exitStatus, residentBytes, readBytes, compilers, family, end } = look;
  // A client and its container are two, whatever lives in it; a container whose client is gone is one, and no server without workers.
  const isContained = family.some((member) => insideOf(member) !== undefined);
  const running = family.filter(({ presence }) => presence === 'running').length;
  const children = isContained ? undefined : Math.max(0, running - 1);
  const signs = { exitStatus, residentBytes, readBytes, gpuUsedMiB, compilers, children };
  return { presence: main, ...signs, ...(end === undefined ? {} : { end }) };
}

/** Nothing more will come of it by itself. */
export function isOver({ state }: LiveVerdict): boolean {
  return state === 'crashed' || state === 'hung' || state === 'stopped' || state === 'absent';
}
