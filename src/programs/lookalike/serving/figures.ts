/** The figures of a serving engine: what its `/metrics` shows. Gauges are set by `work-log.ts`, counters only grow. */
import type { Ended } from './scheduled-event.ts';

export interface Figures {
  running: number;
  queued: number;
  usedTokens: number;
  generatedPerSecond: number;
  hitRate: number;
  ratio: number;
  requests: number;
  aborted: number;
  /** vLLM counts a prompt at its first token, SGLang prompt and answer when the request is done. */
  promptTokens: number;
  generatedTokens: number;
  cachedTokens: number;
  retracted: number;
  /** SGLang's realtime_tokens: as batches are printed. */
  prefillTokens: number;
  prefillCachedTokens: number;
  decodeTokens: number;
  finished: { stop: number; length: number; abort: number };
  firstTokens: Spread;
  wholeRequests: Spread;
}

/** A histogram's sum and count. */
export interface Spread {
  sum: number;
  count: number;
}

export const noFigures = (): Figures => ({
  ...{ running: 0, queued: 0, usedTokens: 0, generatedPerSecond: 0, hitRate: 0, ratio: 0, requests: 0, aborted: 0 },
  ...{ promptTokens: 0, generatedTokens: 0, cachedTokens: 0, retracted: 0 },
  ...{ prefillTokens: 0, prefillCachedTokens: 0, decodeTokens: 0 },
  finished: { stop: 0, length: 0, abort: 0 },
  firstTokens: { sum: 0, count: 0 },
  wholeRequests: { sum: 0, count: 0 },
});

export function addTo(spread: Spread, value: number): void {
  spread.sum += value;
  spread.count += 1;
}

export function countEnded(figures: Figures, { ending, seconds, cachedTokens }: Ended): void {
  figures.requests += 1;
  figures.cachedTokens += cachedTokens;
  addTo(figures.wholeRequests, seconds);
  if (ending !== 'finished') {
    figures.aborted += 1;
    figures.finished.abort += 1;
  }
}
