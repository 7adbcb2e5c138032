/** Gathers the progress of a run under way from the session's own numbers; a snapshot costs no query but one row a partition. */

import type { Gate } from '../generation/gate.ts';
import type { Tally } from '../generation/tally.ts';
import type { Clock } from '../host/host.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { RunSpec } from '../spec/run.ts';
import type { Enrolments } from './enrolments.ts';
import {
  computeRate,
  estimateRemaining,
  type PartitionProgress,
  type Progress,
  RATE_WINDOW_MS,
  type RateSample,
} from './progress.ts';

export interface Watched {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly tally: Tally;
  readonly gate: Gate;
  readonly clock: Clock;
  readonly enrolments: Enrolments;
  readonly drain: AbortSignal;
}

export function watchProgress(watched: Watched): () => Progress {
  const { run, ledger, tally, gate, clock, enrolments, drain } = watched;
  const startedMs = clock.elapsed();
  const samples: RateSample[] = [{ elapsedMs: 0, tokens: 0 }];
  return () => {
    const elapsedMs = clock.elapsed() - startedMs;
    samples.push({ elapsedMs, tokens: tally.sessionTokens });
    while (samples.length > 2 && elapsedMs - (samples[1]?.elapsedMs ?? 0) > RATE_WINDOW_MS) samples.shift();
    const counters = new Map(ledger.partitions().map((partition) => [partition.name, partition]));
    const partitions = run.partitions.map(({ name, budget }): PartitionProgress => {
      const { answers, truncated, spentTokens } = tally.of(name);
      // What is shown as done is durable, so it comes from the ledger and not from the tally.
      const { enrolled = 0, done = 0, aside = 0, dropped = 0 } = counters.get(name) ?? {};
      return {
        name,
        enrolled,
        enrolmentOpen: enrolments.isOpen(name),
        done,
        aside,
        dropped,
        answers,
        truncated,
        spentTokens,
        budget,
      };
    });
    const tokensPerS = computeRate(samples);
    return {
      partitions,
      inFlight: tally.attemptsInFlight,
      gate: gate.limit,
      tokensPerS,
      elapsedMs,
      remainingMs: estimateRemaining(partitions, tokensPerS),
      draining: drain.aborted,
    };
  };
}
