/** The launches of Kimi-K2.5 (INT4) on 8 × RTX PRO 6000, SGLang with TP 8: what was printed, and what the plan says of it. */
import { describe, expect, it } from 'vitest';
import { findGpu } from './gpus.ts';
import { findKnownModel } from './known-models.ts';
import { type MeasuredLaunch, planLaunch } from './plan-launch.ts';
import { readFacts } from './read-facts.ts';
import { readModelConfig } from './read-model-config.ts';

const known = findKnownModel('moonshotai/Kimi-K2.5');
if (known === undefined) throw new Error('the table has no Kimi-K2.5');
const shape = readModelConfig(known);
const gpu = findGpu('NVIDIA RTX PRO 6000 Blackwell Server Edition');
const wordsOf = (fraction: number, kv: string) => ['--tp', '8', `--mem-fraction-static=${fraction}`, '--kv-cache-dtype', kv];
const plan = (words: readonly string[], observations: readonly MeasuredLaunch[] = []) =>
  planLaunch({ engine: 'sglang', version: '0.5.8', shape, gpu, flags: words, observations }).prediction;
const factsOf = (given: Record<string, number>, flags?: readonly string[]): MeasuredLaunch => ({
  facts: readFacts(given).facts,
  source: 'test',
  ...(flags === undefined ? {} : { flags }),
});

/** Fraction, KV type, printed pool, printed memory left after graph capture. */
const PRINTED = [
  [0.88, 'bf16', 159_277, 5.47],
  [0.9, 'fp8_e4m3', 376_029, 3.52],
] as const;
const TWO_DECIMALS = factsOf({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04 });

describe('from two-decimal facts', () => {
  it.each(PRINTED)(
    '%s %s holds the printed %s tokens within 0.2 percent and inside the interval',
    (fraction, kv, tokens, free) => {
      const said = plan(wordsOf(fraction, kv), [TWO_DECIMALS]);
      expect(Math.abs(said.poolTokens / tokens - 1)).toBeLessThan(0.002);
      expect(tokens).toBeGreaterThanOrEqual(said.poolTokensRange.low);
      expect(tokens).toBeLessThanOrEqual(said.poolTokensRange.high);
      expect(Math.abs(said.freeAfterGraphsGiB - free)).toBeLessThan(0.1);
      expect(said).toMatchObject({ verdict: 'fits', maxRunningRequests: 2048 });
      expect(said.errorPercent).toBeLessThan(0.3);
    },
  );

  it('0.85 holds 116K', () => {
    expect(Math.abs(plan(wordsOf(0.85, 'bf16'), [TWO_DECIMALS]).poolTokens - 116_000)).toBeLessThan(500);
  });

  it('0.93 starts and dies under load: 0.82 GB were left, less than one prefill chunk needs', () => {
    const said = plan(wordsOf(0.93, 'bf16'), [TWO_DECIMALS]);
    expect(said.verdict).toBe('dies-under-load');
    expect(Math.abs(said.freeAfterGraphsGiB - 0.82)).toBeLessThan(0.1);
    expect(said.because).toContain('are left after graph capture');
  });
});

it('the automatic fraction of a log is found again, and with it the tiny pool', () => {
  // Printed: 0.7714564062499999, 94.14 before, 21.82 after, 4,578 tokens, max_running_requests 2048.
  const flags = ['--tp', '8', '--disable-cuda-graph'];
  const { launch, prediction } = planLaunch({
    engine: 'sglang',
    version: '0.5.8',
    shape,
    gpu,
    flags,
    observations: [factsOf({ freeBeforeLoadGiB: 94.14, freeAfterLoadGiB: 21.82 })],
  });
  expect(launch.memoryFraction).toBeCloseTo(0.7714564, 6);
  expect(prediction.poolTokensRange.low).toBeLessThanOrEqual(4578);
  expect(prediction.poolTokensRange.high).toBeGreaterThanOrEqual(4578);
  expect(prediction).toMatchObject({ verdict: 'too-small', maxRunningRequests: 2048 });
});

describe('from a log that prints its own capacity', () => {
  const log = factsOf({ freeBeforeLoadGiB: 94.04, poolTokens: 159_277, freeAfterGraphsGiB: 5.47 }, wordsOf(0.88, 'bf16'));

  it('gives the printed numbers back', () => {
    const own = plan(wordsOf(0.88, 'bf16'), [
      factsOf({ freeBeforeLoadGiB: 94.04, poolTokens: 159_277, freeAfterGraphsGiB: 5.47 }),
    ]);
    expect(own).toMatchObject({ poolTokens: 159_277, freeAfterGraphsGiB: 5.47, errorPercent: 0 });
  });

  it('tells the other launches within 0.02 percent', () => {
    expect(Math.abs(plan(wordsOf(0.9, 'fp8_e4m3'), [log]).poolTokens / 376_029 - 1)).toBeLessThan(0.0002);
    const other = factsOf({ freeBeforeLoadGiB: 94.04, poolTokens: 376_029 }, wordsOf(0.9, 'fp8_e4m3'));
    expect(Math.abs(plan(wordsOf(0.88, 'bf16'), [other]).poolTokens / 159_277 - 1)).toBeLessThan(0.0002);
    expect(plan(wordsOf(0.85, 'bf16'), [log]).errorPercent).toBeLessThan(0.02);
  });

  it('tells headrooms within 0.1 GiB', () => {
    expect(Math.abs(plan(wordsOf(0.9, 'fp8_e4m3'), [log]).freeAfterGraphsGiB - 3.52)).toBeLessThan(0.1);
    expect(Math.abs(plan(wordsOf(0.93, 'bf16'), [log]).freeAfterGraphsGiB - 0.82)).toBeLessThan(0.1);
  });

  it('two such logs tell the free memory before and after the weights with no other fact', () => {
    const both = PRINTED.map(([fraction, kv, tokens]) => factsOf({ poolTokens: tokens }, wordsOf(fraction, kv)));
    const said = plan(wordsOf(0.85, 'bf16'), both);
    expect(said.freeBeforeLoadGiB).toBeCloseTo(94.04, 1);
    expect(said.weightsGiBPerGpu).toBeCloseTo(72.33, 1);
    expect(said.errorPercent).toBeLessThan(0.02);
  });
});

it('from nothing but the config: weights within 1 percent, and the hierarchical cache times all ranks', () => {
  const said = plan([...wordsOf(0.88, 'bf16'), '--enable-hierarchical-cache', '--hicache-size', '48']);
  expect(Math.abs(said.weightsGiBPerGpu / 72.33 - 1)).toBeLessThan(0.01);
  expect(said.poolTokensRange.low).toBeLessThan(159_277);
  expect(said.poolTokensRange.high).toBeGreaterThan(159_277);
  expect(said.bytesPerToken).toBe(70_272);
  // 48 decimal GB for each of 8 ranks; each holds the same 683,060 tokens.
  expect(said.hostCache.tokens).toBe(683_060);
  expect(said.hostCache.GiBTotal).toBeCloseTo((8 * 48e9) / 2 ** 30, 2);
});

describe('any subset of the facts', () => {
  it.each<[string, Record<string, number>, number]>([
    ['weights alone', { weightsGiBPerGpu: 72.33 }, 0.05],
    ['free before the load alone', { freeBeforeLoadGiB: 94.04 }, 0.1],
    ['free after it alone', { freeAfterLoadGiB: 21.71 }, 0.02],
    ['before and after', { freeBeforeLoadGiB: 94.04, freeAfterLoadGiB: 21.71 }, 0.002],
    ['the pool alone', { poolGiB: 10.42 }, 0.002],
    [
      'all of them',
      { weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04, freeAfterLoadGiB: 21.71, poolGiB: 10.42, graphsGiB: 3.3 },
      0.002,
    ],
  ])('%s', (_, given, width) => {
    const said = plan(wordsOf(0.88, 'bf16'), [factsOf(given)]);
    expect(Math.abs(said.poolTokens / 159_277 - 1)).toBeLessThan(width);
    expect(said.poolTokensRange.low).toBeLessThanOrEqual(159_277);
    expect(said.poolTokensRange.high).toBeGreaterThanOrEqual(159_277);
    expect(said.sources.join()).toContain('measured: test');
  });

  it('what graphs took replaces the guess', () => {
    const less = plan(wordsOf(0.88, 'bf16'), [factsOf({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04, graphsGiB: 2.3 })]);
    const more = plan(wordsOf(0.88, 'bf16'), [factsOf({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04, graphsGiB: 3.3 })]);
    expect(less.freeAfterGraphsGiB - more.freeAfterGraphsGiB).toBeCloseTo(1, 6);
    expect(more.freeAfterGraphsGiB).toBeCloseTo(5.47, 0);
  });
});
