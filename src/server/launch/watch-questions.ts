/**
 * What a watch asks of a server over HTTP: health and counters, each at most once at a time, none longer waited for than a look
 * may last. GETs alone, and none that makes it work for itself unless the watch asks for health.
 */
import type { Health } from '../../diagnosis/live/look.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import type { Dialect } from '../../engine/dialect.ts';
import type { Clock } from '../../host/host.ts';
import type { HttpClient } from '../../host/http.ts';
import { openTimeLimit } from '../../host/time-limit.ts';
import { AskBeside } from './ask-beside.ts';
import { askHealth } from './ask-health.ts';

export interface QuestionsOptions {
  readonly dialect: Dialect;
  /** To its port; for health and metrics alone. */
  readonly control: HttpClient;
  readonly clock: Clock;
}

/** A look waits so long for health and counters, then takes what it last heard. */
const ANSWER_WITHIN_MS = 2_000;
const METRICS_TIMEOUT_MS = 25_000;

/** `refused`: nobody was there to answer. `without`: it answers, and has none. */
export type CountersReply = EngineCounters | 'refused' | 'without' | undefined;

export class WatchQuestions {
  readonly #options: QuestionsOptions;
  readonly #ended = new AbortController();
  readonly #health: AskBeside<Health>;
  readonly #counters: AskBeside<CountersReply>;
  /** By the clock of the looks; undefined = its log has not said ready. */
  #readySince: number | undefined;

  constructor(options: QuestionsOptions) {
    const { dialect, control, clock } = options;
    this.#options = options;
    const elapsed = () => clock.elapsed();
    this.#health = new AskBeside(() => askHealth(control, dialect.healthRequest, clock, this.#ended.signal), elapsed);
    this.#counters = new AskBeside(() => this.#askCounters(), elapsed);
  }

  /** Something answers on its port. */
  get isListening(): boolean {
    return this.#health.last?.kind === 'http';
  }

  get countersReply(): CountersReply {
    return this.#counters.last;
  }

  get counters(): EngineCounters | undefined {
    const { last } = this.#counters;
    return typeof last === 'string' ? undefined : last;
  }

  /** How long the open question for counters has been waiting; 0 = none is open. */
  get countersWaitMs(): number {
    return this.#counters.waitingMs;
  }

  /** A refusal of a question from before the log said ready is no refusal of a ready server, however late it is heard. */
  healthFor(isReady: boolean): Health | undefined {
    if (isReady) this.#readySince ??= this.#options.clock.elapsed();
    const { last, lastAskedAt } = this.#health;
    const isOld = this.#readySince !== undefined && lastAskedAt <= this.#readySince;
    return isOld && last?.kind === 'refused' ? undefined : last;
  }

  /** Counters are asked for once something answers. */
  async ask(wanted: { readonly health: boolean; readonly counters: boolean }): Promise<void> {
    const enough = new AbortController();
    const within = this.#options.clock.sleep(ANSWER_WITHIN_MS, enough.signal);
    await Promise.all([
      wanted.health ? this.#health.ask(within) : undefined,
      wanted.counters && this.isListening ? this.#counters.ask(within) : undefined,
    ]);
    enough.abort();
  }

  close(): void {
    this.#ended.abort();
  }

  async #askCounters(): Promise<CountersReply> {
    const { dialect, control, clock } = this.#options;
    if (dialect.metrics === undefined) return 'without';
    const limit = openTimeLimit(clock, METRICS_TIMEOUT_MS, this.#ended.signal);
    const reply = await control.send(dialect.metrics.request, limit.signal);
    limit.close();
    if (reply.kind === 'transport') return 'refused';
    if (reply.kind === 'aborted') return undefined;
    const counters = dialect.metrics.parse({ status: reply.status, body: reply.body.take() });
    return counters ?? (reply.status < 500 ? 'without' : undefined);
  }
}
