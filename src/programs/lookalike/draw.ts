/**
 * Numbers that look random and depend on nothing but their key, so that a test that failed once fails again.
 * Pure.
 */
import { createHash } from 'node:crypto';
import type { Random } from '../../host/host.ts';
import type { AnswerTokens, Latency } from './scenario.ts';

/** mulberry32, 32 bits of state from sha256 of the key: fast, and good enough to pick words and delays. */
export function randomFrom(...key: readonly (string | Uint8Array)[]): Random {
  const hash = createHash('sha256');
  for (const part of key) hash.update(part).update('/');
  let state = hash.digest().readUInt32LE(0);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One latency, in milliseconds of the lookalike's clock, for an answer of so many tokens. */
export function drawLatency(latency: Latency, answerTokens: number, random: Random): number {
  switch (latency.kind) {
    case 'fixed':
      return latency.ms;
    case 'uniform':
      return latency.minMs + random() * (latency.maxMs - latency.minMs);
    case 'lognormal':
      return Math.min(drawLognormal(latency.ms, latency.sigma, random), latency.maxMs ?? Number.POSITIVE_INFINITY);
    case 'per-token':
      return latency.ms + latency.msPerToken * answerTokens;
  }
}

/** How many ids an answer has, its stop id included: at least 2, one byte of text and the stop id. */
export function drawAnswerTokens(length: AnswerTokens, random: Random): number {
  switch (length.kind) {
    case 'fixed':
      return Math.max(2, length.tokens);
    case 'uniform':
      return Math.max(2, length.min + Math.floor(random() * (length.max - length.min + 1)));
    case 'lognormal': {
      const drawn = Math.round(drawLognormal(length.mean, length.sigma, random));
      return Math.max(2, Math.min(drawn, length.max ?? Number.POSITIVE_INFINITY));
    }
  }
}

/** Given by its mean, not its median: the mean is what throughput follows. */
function drawLognormal(mean: number, sigma: number, random: Random): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()); // Box–Muller; 1 − u is never 0
  return Math.exp(Math.log(mean) - (sigma * sigma) / 2 + sigma * normal);
}
