/**
 * How one prompt is asked: its partition's settings, and its temperature where the partition mixes several. Pure.
 * The temperature depends on the seed, the mixture and the prompt id alone: not on the order, the server or the attempt.
 */
import { createHash } from 'node:crypto';
import { bug } from '../base/errors.ts';
import type { Sampling } from '../base/sampling.ts';
import type { AskSettings, RunSpec } from '../spec/run.ts';

export interface PromptSettings {
  /** What is asked, and what the record says. */
  readonly sampling: Sampling;
  readonly templateKwargs: Readonly<Record<string, unknown>>;
  readonly extraBody: Readonly<Record<string, unknown>>;
}

export function settingsOf(run: RunSpec, partition: string, promptId: string): PromptSettings {
  const ask = run.partitions.find(({ name }) => name === partition)?.ask;
  if (ask === undefined)
    throw bug(`A prompt of partition ${partition} was leased, which the run file does not have.`, { partition });
  const { sampling, templateKwargs, extraBody } = ask;
  return { sampling: { ...sampling, temperature: drawTemperature(ask, promptId) }, templateKwargs, extraBody };
}

/** Shares lie side by side from 0; the prompt's own number in [0, 1) falls into one of them, or behind them all. */
export function drawTemperature({ sampling, temperatureMixture }: AskSettings, promptId: string): number {
  if (temperatureMixture.length === 0) return sampling.temperature;
  const drawn = createHash('sha256').update(`temperature/${sampling.seed}/${promptId}`).digest().readUInt32BE(0) / 2 ** 32;
  let upTo = 0;
  for (const { temperature, share } of temperatureMixture) {
    upTo += share;
    if (drawn < upTo) return temperature;
  }
  return sampling.temperature;
}
