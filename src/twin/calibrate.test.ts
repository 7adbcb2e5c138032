import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FP8_BYTES, STORY_SHAPE } from '../../test/support/story.ts';
import { calibrate, PCIE_PREFILL, PUBLISHED, solveTwoPoints, stepSeconds, stepTimeOf, withKvBytes } from './calibrate.ts';
import { graphBatchSizes } from './server.ts';
import { decodeBaseSeconds, decodeSeconds } from './step-time.ts';

const GRAPHS = graphBatchSizes('sglang', 512);

describe('calibration', () => {
  test('the two launches of the story give the constants that the field report computed', () => {
    // 43 running at 740 tok/s on a full bf16 pool; 142 at 1,375 on the fp8 pool, where a token has half the bytes.
    const bf16 = { running: 43, tokensPerSecond: 740, contextTokens: 149_400 };
    const fp8 = { running: 142, tokensPerSecond: 1375, contextTokens: (142 * 2570 * FP8_BYTES) / STORY_SHAPE.kvBytesPerToken };
    const solved = solveTwoPoints([bf16, fp8], STORY_SHAPE, { weights: 1.15, kv: 1.15 });
    expect(solved?.fixedSeconds).toBeGreaterThan(0.0096);
    expect(solved?.fixedSeconds).toBeLessThan(0.0106);
    expect(solved?.perRequestSeconds).toBeGreaterThan(0.00027);
    expect(solved?.perRequestSeconds).toBeLessThan(0.00029);
  });

  test('two points of one batch, or of impossible times, have no solution', () => {
    const point = { running: 43, tokensPerSecond: 740, contextTokens: 0 };
    expect(solveTwoPoints([point, point], STORY_SHAPE, { weights: 1.15, kv: 1.15 })).toBeUndefined();
    expect(
      solveTwoPoints([point, { ...point, running: 142, tokensPerSecond: 9000 }], STORY_SHAPE, { weights: 1.15, kv: 1.15 }),
    ).toBeUndefined();
  });

  test('many exact points bring back the coefficients they were made of', () => {
    const made = { fixedSeconds: 0.009, weights: 1.3, kv: 0.9, perRequestSeconds: 0.0002 };
    const time = stepTimeOf(made, STORY_SHAPE, PCIE_PREFILL);
    const samples = [1, 8, 16, 43, 64, 142, 256, 400].flatMap((running) =>
      [200, 3000, 20_000].map((context) => {
        const contextTokens = running * context;
        return { running, contextTokens, tokensPerSecond: running / stepSeconds(time, GRAPHS, { running, contextTokens }) };
      }),
    );
    const all = Array.from({ length: 60 }, () => samples).flat();
    const { coefficients, points } = calibrate({
      samples: all,
      shape: STORY_SHAPE,
      graphBatchSizes: GRAPHS,
      prefill: PCIE_PREFILL,
    });
    for (const key of ['fixedSeconds', 'weights', 'kv', 'perRequestSeconds'] as const)
      expect(Math.abs(coefficients[key] / made[key] - 1)).toBeLessThan(0.03);
    for (const { measuredSeconds, fittedSeconds } of points)
      expect(Math.abs(fittedSeconds / measuredSeconds - 1)).toBeLessThan(0.01);
  });

  test('without points it is the prior; no coefficient is ever negative', () => {
    const input = { shape: STORY_SHAPE, graphBatchSizes: GRAPHS, prefill: PCIE_PREFILL };
    const prior = calibrate({ ...input, samples: [] }).coefficients;
    for (const key of ['fixedSeconds', 'weights', 'kv', 'perRequestSeconds'] as const)
      expect(prior[key]).toBeCloseTo(PUBLISHED.mean[key], 9);
    const sample = fc.record({
      running: fc.integer({ min: 1, max: 600 }),
      tokensPerSecond: fc.double({ min: 1, max: 50_000, noNaN: true }),
      contextTokens: fc.integer({ min: 0, max: 1_000_000 }),
    });
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 6 }), (samples) => {
        for (const value of Object.values(calibrate({ ...input, samples }).coefficients)) {
          expect(Number.isFinite(value)).toBe(true);
          expect(value).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  test('prompt work in a sample is taken out of its step time', () => {
    const input = { shape: STORY_SHAPE, graphBatchSizes: GRAPHS, prefill: PCIE_PREFILL };
    const sample = { running: 40, tokensPerSecond: 500, contextTokens: 100_000 };
    const busy = calibrate({ ...input, samples: [{ ...sample, prefillTokensPerSecond: 810 }] });
    expect(busy.points[0]?.measuredSeconds).toBeCloseTo(0.08 * 0.9, 6);
  });

  test('half the KV bytes halve the reading of the cache and nothing else', () => {
    const time = stepTimeOf(PUBLISHED.mean, STORY_SHAPE, PCIE_PREFILL);
    const half = withKvBytes(time, STORY_SHAPE.kvBytesPerToken, FP8_BYTES);
    expect(half).toEqual({ ...time, perContextTokenSeconds: time.perContextTokenSeconds / 2 });
  });
});

describe('step time', () => {
  test('graphs pad to the next captured size and end at the largest', () => {
    expect(GRAPHS).toHaveLength(52);
    expect(GRAPHS.slice(0, 8)).toEqual([1, 2, 4, 8, 12, 16, 24, 32]);
    expect(graphBatchSizes('sglang', 1024).slice(-3)).toEqual([960, 992, 1024]);
    expect(graphBatchSizes('sglang', 512, 40)).toEqual([1, 2, 4, 8, 12, 16, 24, 32, 40]);
    expect(graphBatchSizes('vllm', 512).slice(0, 7)).toEqual([1, 2, 4, 8, 16, 24, 32]);
    const time = stepTimeOf(PUBLISHED.mean, STORY_SHAPE, PCIE_PREFILL);
    const at = (batch: number) => decodeBaseSeconds(time, GRAPHS, batch);
    expect(at(33)).toBe(at(40));
    expect(at(41)).toBeGreaterThan(at(40));
    expect(at(513) - at(512)).toBeGreaterThan(0.04);
  });

  test('a run of steps takes as long as its steps one by one', () => {
    const counts = fc.record({
      steps: fc.integer({ min: 0, max: 300 }),
      batch: fc.integer({ min: 1, max: 200 }),
      context: fc.integer({ min: 0, max: 400_000 }),
    });
    fc.assert(
      fc.property(counts, ({ steps, batch, context }) => {
        let seconds = 0;
        for (let at = 0; at < steps; at++) seconds += decodeSeconds(0.02, 5e-8, 1, batch, context + at * batch);
        expect(decodeSeconds(0.02, 5e-8, steps, batch, context)).toBeCloseTo(seconds, 9);
      }),
    );
  });
});
