/**
 * Moves the gate with the servers: held while none is ready, opened step by step from then on, and with `in-flight: auto`
 * as wide as their KV pools allow. What the width should be is decided in `auto-gate.ts`.
 */
import type { Happening } from '../base/events.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { MOST_IN_FLIGHT, type RunSpec } from '../spec/run.ts';
import { ANSWERS_BEFORE_MEAN, AutoGate, type MeanTokens } from './auto-gate.ts';
import type { Gate } from './gate.ts';
import type { Tally } from './tally.ts';

export interface GateKeeperOptions {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly fleet: Fleet;
  readonly tally: Tally;
  readonly gate: Gate;
  readonly emit: (happening: Happening) => void;
  /** An event that cannot be written stops the session. */
  readonly stop: (thrown: unknown) => void;
}

/** Of English text, about. */
const BYTES_PER_TOKEN = 4;

export class GateKeeper {
  readonly #options: GateKeeperOptions;
  readonly #auto = new AutoGate();
  readonly #expected: MeanTokens;
  #stopListening: () => void = () => undefined;

  constructor(options: GateKeeperOptions) {
    this.#options = options;
    this.#expected = expectedMeans(options);
  }

  begin(): void {
    this.#stopListening = this.#options.fleet.onChange(() => this.#serversChanged());
    this.#serversChanged();
  }

  end(): void {
    this.#stopListening();
  }

  /** A conversation has ended: the means may have moved. */
  answered(): void {
    this.#followPools();
  }

  #serversChanged(): void {
    const { fleet, tally, gate } = this.#options;
    this.#followPools();
    if (fleet.isReady) gate.release(tally.attemptsInFlight);
    else gate.hold();
  }

  #followPools(): void {
    const { run, fleet, tally, gate, emit, stop } = this.#options;
    if (!run.isInFlightAuto) return;
    const change = this.#auto.follow({
      ...{ servers: fleet.facts(), measured: tally.means(), expected: this.#expected },
      ...{ otherwise: Math.ceil(run.inFlight / run.servers.length), most: MOST_IN_FLIGHT },
    });
    const from = gate.limit;
    if (change === undefined || change.limit === from) return;
    gate.setLimit(change.limit);
    try {
      emit({ kind: 'gate.changed', subject: run.name, facts: { from, to: change.limit, because: change.because } });
    } catch (thrown) {
      stop(thrown);
    }
  }
}

/** Prompts as long as those enrolled; answers as long as those there are, and before 30 of them as long as they may be. */
function expectedMeans({ run, ledger }: GateKeeperOptions): MeanTokens {
  const sum = { promptsBytes: 0, enrolled: 0, spentTokens: 0, answers: 0 };
  for (const { promptsBytes, enrolled, spentTokens, answers } of ledger.partitions()) {
    sum.promptsBytes += promptsBytes;
    sum.enrolled += enrolled;
    sum.spentTokens += spentTokens;
    sum.answers += answers;
  }
  const longest = Math.max(...run.partitions.map(({ ask }) => ask.sampling.maxTokens));
  return {
    promptTokens: sum.promptsBytes / Math.max(1, sum.enrolled) / BYTES_PER_TOKEN,
    outputTokens: sum.answers < ANSWERS_BEFORE_MEAN ? longest : sum.spentTokens / sum.answers,
  };
}
