/**
 * The questions of a probe to one server: health, its account of itself, its counters. They are begun and not waited for; whoever
 * wants an answer takes what is there, or waits for it. What is lost on the way to the server is no answer of the server.
 */
import { AerieError } from '../../base/errors.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import type { EngineName } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import type { Clock, Host } from '../../host/host.ts';
import type { HttpClient } from '../../host/http.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { untilOpen } from '../../machine/until-open.ts';
import type { AskedHealth } from '../../server/launch/ask-health.ts';
import { type AskedServer, askCounters, askFacts, askHealthOnce, HEALTH_WAITS_MS, type ToldFacts } from './ask-server.ts';
import type { Subject } from './subject.ts';

export interface ProbeWorld {
  readonly host: Host;
  /** Real time, whatever rate the rest lives at: what is probed lives in the world. */
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** By the clock: when all must be over. */
  readonly endsAt: number;
}

/** Where a server listens. */
export interface Address {
  /** Asked from here; '' = by its port. */
  readonly url: string;
  /** Of its machine; 0 = not known. */
  readonly port: number;
  /** '' = loopback. */
  readonly host: string;
}

/** What is left for the second reading when health has been waited for. */
const LAST_READING_MS = 2_500;
/** A way through ssh takes as long as a login. */
const WAY_MS = 8_000;
/** Health, accounts and counters side by side, the late ones too. */
const CONNECTIONS = 12;

export class ServerQuestions {
  readonly #subject: Subject;
  readonly #machine: Machine;
  readonly #world: ProbeWorld;
  /** What could not be asked, and why. */
  readonly unseen: string[] = [];
  /** Why it cannot be asked from here, whatever its log says. */
  refusal: AerieError | undefined;
  #reach: Reach | undefined;
  #client: HttpClient | undefined;
  #asked: AskedServer | undefined;
  #isBegun = false;
  #healthPending: Promise<void> | undefined;
  #factsPending: Promise<void> | undefined;
  health: AskedHealth | undefined;
  facts: ToldFacts | undefined;
  counters: EngineCounters | undefined;
  /** Health checks that were sent: each may be a token. */
  ownChecks = 0;

  constructor(subject: Subject, machine: Machine, world: ProbeWorld) {
    this.#subject = subject;
    this.#machine = machine;
    this.#world = world;
  }

  get #engine(): EngineName | undefined {
    return this.#subject.engine ?? this.facts?.engine;
  }

  /** Resolves when the questions are under way; does nothing the second time, or where there is no address. */
  async begin({ url, port, host: address }: Address): Promise<void> {
    if (this.#isBegun || (url === '' && port === 0)) return;
    this.#isBegun = true;
    const { host, clock, signal } = this.#world;
    const reach = url === '' ? await this.#machine.reach(port, address === '' ? undefined : address) : undefined;
    this.#reach = reach;
    if (reach !== undefined && !(await this.#untilOpen(reach, port))) return;
    const { headers } = this.#subject;
    const way = { baseUrl: reach?.baseUrl ?? url, isDirect: reach !== undefined };
    const client = host.openHttp({ ...way, connections: CONNECTIONS, headers });
    this.#client = client;
    this.#asked = { client, clock, signal };
    this.#askHealth(this.#asked);
    this.#factsPending = this.#askAccount(this.#asked);
  }

  async #untilOpen(reach: Reach, port: number): Promise<boolean> {
    const { clock, signal, endsAt } = this.#world;
    const until = Math.min(clock.elapsed() + WAY_MS, endsAt - LAST_READING_MS);
    try {
      const isOpen = await untilOpen(reach, clock, until, signal);
      if (!isOpen) this.unseen.push(`health: no way to port ${port} of ${this.#machine.name} came about in time`);
      return isOpen;
    } catch (thrown) {
      if (!(thrown instanceof AerieError)) throw thrown;
      this.refusal = thrown;
      this.unseen.push(`health (${thrown.code}): ${thrown.message} ${thrown.detail.because ?? ''}`.trim());
      return false;
    }
  }

  #askHealth(asked: AskedServer): void {
    const { clock, endsAt } = this.#world;
    const { path } = dialectOf(this.#engine ?? 'sglang').healthRequest;
    const waitMs = Math.max(0, Math.min(HEALTH_WAITS_MS, endsAt - LAST_READING_MS - clock.elapsed()));
    const drops = this.#reach?.drops() ?? 0;
    this.ownChecks += 1;
    this.#healthPending = askHealthOnce(asked, path, waitMs).then((said) => {
      if (said.health.kind !== 'http' && (this.#reach?.drops() ?? 0) > drops) return;
      this.health = this.#reach !== undefined && !this.#machine.isHere ? withoutWay(said) : said;
    });
  }

  async #askAccount(asked: AskedServer): Promise<void> {
    const { engine, known } = this.#subject;
    this.counters = engine === undefined ? undefined : await askCounters(asked, engine);
    this.facts = await askFacts(asked, engine, known?.run.model ?? '');
    if (this.counters === undefined && this.#engine !== undefined) this.counters = await askCounters(asked, this.#engine);
  }

  /** Waits for health and account; who refused is asked once more, because a port may open or close between two readings. */
  async settle(): Promise<void> {
    await Promise.all([this.#healthPending, this.#factsPending]);
    if (this.#asked === undefined || this.health?.health.kind !== 'refused') return;
    this.#askHealth(this.#asked);
    await this.#healthPending;
  }

  /** The counters of the second reading. */
  async countAgain(engine: EngineName | undefined): Promise<void> {
    if (this.#asked === undefined || engine === undefined) return;
    this.counters = this.health?.health.kind === 'refused' ? undefined : await askCounters(this.#asked, engine);
  }

  async close(): Promise<void> {
    await Promise.all([this.#client?.close(), this.#reach?.close()]);
  }
}

/** ssh takes every connection and closes those that nobody takes there: that is what a closed port looks like from here. */
function withoutWay(said: AskedHealth): AskedHealth {
  return said.health.kind === 'refused' ? { ...said, because: '' } : said;
}
