/** What must hold of every plan, whatever the model, the GPU and the flags. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findGpu, GPUS } from './gpus.ts';
import { findKnownModel, KNOWN_MODELS } from './known-models.ts';
import type { ModelShape } from './model-shape.ts';
import { planLaunch } from './plan-launch.ts';
import { readModelConfig } from './read-model-config.ts';

const shapeOf = (name: string): ModelShape => {
  const known = findKnownModel(name);
  if (known === undefined) throw new Error(`the table has no ${name}`);
  return readModelConfig(known);
};
const SHAPES = KNOWN_MODELS.map(shapeOf).filter((shape) => shape.caches.length > 0);
const hasState = (shape: ModelShape) => shape.caches.some(({ kind }) => kind === 'state');
const isLatent = (shape: ModelShape) => shape.caches.every((group) => group.kind === 'latent' && group.indexerDim === 0);
const plan = (
  shape: ModelShape,
  words: string,
  { gpu = 'H200', engine = 'sglang' as 'sglang' | 'vllm', version = '0.5.8' } = {},
) => planLaunch({ engine, version, shape, gpu: findGpu(gpu), flags: words.split(' ') });
const anyShape = fc.constantFrom(...SHAPES);
const anyTp = fc.constantFrom(1, 2, 4, 8);

describe('for SGLang', () => {
  it('more memory never means fewer tokens', () => {
    const sizes = fc.tuple(fc.integer({ min: 15_000, max: 300_000 }), fc.integer({ min: 0, max: 100_000 }));
    fc.assert(
      fc.property(
        anyShape.filter((shape) => !hasState(shape)),
        anyTp,
        sizes,
        (shape, tp, [memoryMiB, more]) => {
          const gpu = findGpu('H200');
          const at = (MiB: number) =>
            planLaunch({
              engine: 'sglang',
              version: '0.5.8',
              shape,
              gpu: { ...gpu, memoryMiB: MiB },
              flags: ['--tp', String(tp), '--mem-fraction-static', '0.88'],
            }).prediction.poolTokens;
          expect(at(memoryMiB + more)).toBeGreaterThanOrEqual(at(memoryMiB));
        },
      ),
    );
  });

  it('a higher fraction never means fewer tokens, and never more memory left', () => {
    const fraction = fc.double({ min: 0.3, max: 0.96, noNaN: true });
    fc.assert(
      fc.property(
        anyShape.filter((shape) => !hasState(shape)),
        fraction,
        fraction,
        (shape, a, b) => {
          const [low, high] = [Math.min(a, b), Math.max(a, b)].map(
            (at) => plan(shape, `--tp 8 --mem-fraction-static ${at.toFixed(4)}`).prediction,
          );
          expect(high?.poolTokens).toBeGreaterThanOrEqual(low?.poolTokens ?? 0);
          // Half a MiB: what rounding down to whole tokens moves.
          expect(high?.freeAfterGraphsGiB).toBeLessThanOrEqual((low?.freeAfterGraphsGiB ?? 0) + 0.0005);
        },
      ),
    );
  });

  it('tp never splits a latent, and FP8 halves its bytes', () => {
    for (const shape of SHAPES.filter(isLatent)) {
      const bytes = [1, 2, 4, 8, 16].map((tp) => plan(shape, `--tp ${tp} --kv-cache-dtype bf16`).prediction.bytesPerToken);
      expect(new Set(bytes).size).toBe(1);
      expect(plan(shape, '--tp 8 --kv-cache-dtype fp8_e4m3').prediction.bytesPerToken).toBe((bytes[0] ?? 0) / 2);
    }
  });

  it('heads are split until one is left on each rank, and copied from there on', () => {
    const shape = shapeOf('Qwen/Qwen3-235B-A22B'); // 4 KV heads
    const at = (tp: number) => plan(shape, `--tp ${tp} --kv-cache-dtype bf16`).prediction;
    expect([1, 2, 4, 8, 16].map((tp) => at(tp).bytesPerToken)).toEqual([192_512, 96_256, 48_128, 48_128, 48_128]);
    expect(at(8).bytesPerTokenBecause).toContain('copied');
  });

  it('DP attention gives each group a pool of its own and costs the weights of the attention', () => {
    const shape = shapeOf('moonshotai/Kimi-K2.5');
    const one = plan(shape, '--tp 8 --mem-fraction-static 0.88', { gpu: 'B200' });
    const four = plan(shape, '--tp 8 --dp 4 --enable-dp-attention --mem-fraction-static 0.88', { gpu: 'B200' });
    expect(four.prediction.serverTokens).toBe(4 * four.prediction.poolTokens);
    const more = four.prediction.weightsGiBPerGpu - one.prediction.weightsGiBPerGpu;
    expect(more).toBeGreaterThan(3);
    expect(more).toBeLessThan(6);
    expect(four.launch).toMatchObject({ attentionTp: 2, prefillChunkTokens: 16_384 / 4, scheduleConservativeness: 0.3 });
  });

  it('decode context parallelism multiplies the capacity of the server and not the printed pool', () => {
    const shape = shapeOf('moonshotai/Kimi-K2.5');
    const options = { gpu: 'B200', version: '0.5.16' };
    const one = plan(shape, '--tp 8 --mem-fraction-static 0.88 --kv-cache-dtype bf16', options).prediction;
    const eight = plan(shape, '--tp 8 --dcp-size 8 --mem-fraction-static 0.88 --kv-cache-dtype bf16', options).prediction;
    expect(eight).toMatchObject({ poolTokens: one.poolTokens, serverTokens: 8 * one.poolTokens });
  });

  it('a cap, a page and a limit of requests are kept', () => {
    const shape = shapeOf('Qwen/Qwen3-8B');
    const said = plan(shape, '--max-total-tokens 20500 --page-size 64 --max-running-requests 16').prediction;
    expect(said).toMatchObject({ poolTokens: 20_480, maxRunningRequests: 16 });
    expect(said.requestTableGiB).toBeCloseTo((16 * (40_960 + 4) * 4) / 2 ** 30, 6);
    expect(plan(shape, '--tp 1 --max-total-tokens 9000').prediction.maxRunningRequests).toBe(2048);
  });

  it('refuses a host cache that is smaller than the pool, up to 0.5.14', () => {
    const shape = shapeOf('moonshotai/Kimi-K2.5');
    const words = '--tp 8 --mem-fraction-static 0.9 --enable-hierarchical-cache --hicache-size 8';
    expect(plan(shape, words, { version: '0.5.8' }).prediction.because).toContain('must be larger than the pool');
    expect(plan(shape, words, { version: '0.5.15' }).prediction.verdict).not.toBe('refuses-to-start');
  });

  it('refuses what the engine refuses, and says why', () => {
    const shape = shapeOf('moonshotai/Kimi-K2.5');
    expect(plan(shape, '--tp 8 --mem-fraction-static 1.2').prediction.verdict).toBe('refuses-to-start');
    expect(plan(shape, '--tp 8 --kv-cache-dtype bf16', { version: '0.5.2' }).prediction.because).toContain(
      '--kv-cache-dtype bf16',
    );
    const tooHeavy = plan(shape, '--tp 8 --mem-fraction-static 0.7', { gpu: 'RTX PRO 6000' }).prediction;
    expect(tooHeavy).toMatchObject({ verdict: 'refuses-to-start', poolTokens: 0 });
    expect(tooHeavy.because).toMatch(/must be above 0\.7\d/);
  });
});

describe('for vLLM', () => {
  it('more utilization never means fewer tokens', () => {
    const utilization = fc.double({ min: 0.3, max: 0.98, noNaN: true });
    fc.assert(
      fc.property(anyShape, utilization, utilization, (shape, a, b) => {
        const at = (value: number) =>
          plan(shape, `-tp 8 --max-model-len 8192 --gpu-memory-utilization ${value.toFixed(4)}`, {
            engine: 'vllm',
            version: '0.16.0',
          }).prediction.poolTokens;
        expect(at(Math.max(a, b))).toBeGreaterThanOrEqual(at(Math.min(a, b)));
      }),
    );
  });

  it('graphs lie inside the budget from 0.21 on, and beside it before', () => {
    const shape = shapeOf('meta-llama/Llama-3.1-8B-Instruct');
    const at = (version: string) => plan(shape, '--gpu-memory-utilization 0.9', { engine: 'vllm', version }).prediction;
    expect(at('0.21.0').poolGiB).toBeCloseTo(at('0.20.0').poolGiB - at('0.20.0').graphsGiB, 6);
    expect(at('0.20.0').freeAfterGraphsGiB).toBeCloseTo(at('0.21.0').freeAfterGraphsGiB - at('0.20.0').graphsGiB, 6);
  });

  it('does not start where one request of the greatest length does not fit', () => {
    const shape = shapeOf('meta-llama/Llama-3.1-8B-Instruct');
    const said = plan(shape, '--max-model-len 131072', { engine: 'vllm', version: '0.16.0', gpu: 'RTX 4090' }).prediction;
    expect(said).toMatchObject({ verdict: 'refuses-to-start' });
    expect(said.because).toContain('--max-model-len');
  });
});

it('every known model on every GPU ends in a verdict with finite numbers', () => {
  for (const shape of SHAPES)
    for (const gpu of GPUS)
      for (const engine of ['sglang', 'vllm'] as const) {
        const { prediction } = plan(shape, '--tp 8', { gpu: gpu.name, engine, version: '' });
        const numbers = [
          prediction.poolTokens,
          prediction.bytesPerToken,
          prediction.weightsGiBPerGpu,
          prediction.freeAfterGraphsGiB,
          prediction.errorPercent,
        ];
        expect(numbers.every(Number.isFinite), `${shape.name} on ${gpu.name}`).toBe(true);
        expect(prediction.sources.length).toBeGreaterThan(0);
        expect(prediction.cautions.join(' ')).toContain('is assumed');
      }
});
