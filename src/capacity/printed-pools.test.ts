/**
 * Pools that public logs print, from the facts of the same logs: each must lie inside the interval that the rounding of the facts allows.
 * A few lines of the corpus that `npm run bench:capacity` reads whole; sources are public issues and files.
 */
import { describe, expect, it } from 'vitest';
import { findGpu } from './gpus.ts';
import { findKnownModel } from './known-models.ts';
import { planLaunch } from './plan-launch.ts';
import { readFacts } from './read-facts.ts';
import { readModelConfig } from './read-model-config.ts';
import { sizePool } from './sglang-pool.ts';

interface Line {
  engine: 'sglang' | 'vllm';
  version: string;
  model: string;
  gpu: string;
  flags: string;
  facts: Record<string, number>;
  printed: number;
}

const shapeOf = (name: string) => {
  const known = findKnownModel(name);
  if (known === undefined) throw new Error(`the table has no ${name}`);
  return readModelConfig(known);
};
const planOf = (line: Omit<Line, 'printed' | 'facts'>, facts?: Record<string, number>) =>
  planLaunch({
    engine: line.engine,
    version: line.version,
    shape: shapeOf(line.model),
    gpu: findGpu(line.gpu),
    flags: line.flags.split(' '),
    observations: facts === undefined ? [] : [{ facts: readFacts(facts).facts, source: 'log' }],
  });

const LINES: [string, Line][] = [
  [
    'Kimi-K2.5 on a 288 GB card, automatic fraction with the factor for its vision tower',
    {
      engine: 'sglang',
      version: '0.5.9',
      model: 'moonshotai/Kimi-K2.5',
      gpu: 'MI355X',
      flags: '--tp 8',
      facts: { weightsGiBPerGpu: 73.58, freeAfterLoadGiB: 209.98 },
      printed: 2_454_421,
    },
  ],
  [
    'Gemma-3-4B in March 2025: 0.88 × 0.95, sliding layers stored whole',
    {
      engine: 'sglang',
      version: '0.4.4',
      model: 'google/gemma-3-4b-it',
      gpu: 'H200',
      flags: '--mem-fraction-static 0.836',
      facts: { weightsGiBPerGpu: 8.13, freeAfterLoadGiB: 131.08 },
      printed: 834_615,
    },
  ],
  [
    'Llama-3.1-8B, Hopper 80 GB, the 0.88 of old versions',
    {
      engine: 'sglang',
      version: '0.4.6',
      model: 'meta-llama/Llama-3.1-8B-Instruct',
      gpu: 'H100',
      flags: '--tp 1',
      facts: { weightsGiBPerGpu: 15.11, freeAfterLoadGiB: 63.48 },
      printed: 442_750,
    },
  ],
  [
    'Llama-3.1-8B, what was free after the load alone',
    {
      engine: 'sglang',
      version: '0.4.2',
      model: 'meta-llama/Llama-3.1-8B-Instruct',
      gpu: 'H100',
      flags: '--tp 1',
      facts: { freeAfterLoadGiB: 63.72 },
      printed: 444_500,
    },
  ],
  [
    'vLLM V0, a prompt of 20,000 tokens profiled at once',
    {
      engine: 'vllm',
      version: '0.6.4',
      model: 'meta-llama/Llama-3.1-8B-Instruct',
      gpu: 'RTX 3090',
      flags: '--max-model-len 20000',
      facts: { weightsGiBPerGpu: 14.9888, totalGiB: 23.58, activationsGiB: 2.07, outsideTorchGiB: 0.35 },
      printed: 31_232,
    },
  ],
  [
    'vLLM V0, one of 29,000: refused',
    {
      engine: 'vllm',
      version: '0.6.4',
      model: 'meta-llama/Llama-3.1-8B-Instruct',
      gpu: 'RTX 3090',
      flags: '--max-model-len 29000',
      facts: { weightsGiBPerGpu: 14.9888, totalGiB: 23.58, activationsGiB: 2.99, outsideTorchGiB: 0.35 },
      printed: 23_648,
    },
  ],
];

it.each(LINES)('%s', (_, line) => {
  const { poolTokensRange, poolTokens } = planOf(line, line.facts).prediction;
  expect(poolTokensRange.low).toBeLessThanOrEqual(line.printed);
  expect(poolTokensRange.high).toBeGreaterThanOrEqual(line.printed);
  expect(Math.abs(poolTokens / line.printed - 1)).toBeLessThan(0.003);
});

it('vLLM does not start where the longest request does not fit, and 20,000 tokens do', () => {
  const [long, short] = [LINES[5]?.[1], LINES[4]?.[1]];
  if (long === undefined || short === undefined) throw new Error('no lines');
  expect(planOf(long, long.facts).prediction.verdict).toBe('refuses-to-start');
  expect(planOf(short, short.facts).prediction.verdict).toBe('fits');
});

describe('from the config alone', () => {
  it.each([
    [
      'Qwen3-235B-FP8 on 4 × H100 at 0.93',
      {
        engine: 'sglang' as const,
        version: '0.4.10',
        model: 'Qwen/Qwen3-235B-A22B-FP8',
        gpu: 'H100',
        flags: '--tp 4 --mem-fraction-static 0.93',
      },
      367_404,
    ],
    [
      'Kimi-K2.5 on 8 × B300, vLLM',
      {
        engine: 'vllm' as const,
        version: '0.21.0',
        model: 'moonshotai/Kimi-K2.5',
        gpu: 'B300',
        flags: '-tp 8 --gpu-memory-utilization 0.9',
      },
      2_499_584,
    ],
    [
      'Gemma-2-9B on 8 × L4, vLLM V0',
      { engine: 'vllm' as const, version: '0.5.5', model: 'google/gemma-2-9b-it', gpu: 'L4', flags: '-tp 8' },
      367_712,
    ],
  ])('%s within 5 percent', (_, line, printed) => {
    expect(Math.abs(planOf(line).prediction.poolTokens / printed - 1)).toBeLessThan(0.05);
  });

  it('DeepSeek-V4-Flash keeps 15,955.85 bytes for each token, as its log says', () => {
    const line = {
      engine: 'sglang' as const,
      version: '0.5.12',
      model: 'deepseek-ai/DeepSeek-V4-Flash',
      gpu: 'H20',
      flags: '--tp 8',
    };
    expect(planOf(line).prediction.bytesPerToken).toBeCloseTo(15_955.85, 2);
  });

  it('a hybrid model splits its budget as 454 states and 396,701 tokens, as its log says', () => {
    const line = {
      engine: 'sglang' as const,
      version: '0.5.6',
      model: 'Qwen/Qwen3-Next-80B-A3B-Instruct',
      gpu: 'H100',
      flags: '--tp 8 --mem-fraction-static 0.9',
    };
    const { launch, shape } = planOf(line);
    const rests = Array.from({ length: 4000 }, (_, at) => 8.5 + at / 10_000);
    const pools = rests.map((rest) => sizePool(rest, shape, launch));
    const nearest = pools.reduce((a, b) => (Math.abs(b.tokens - 396_701) < Math.abs(a.tokens - 396_701) ? b : a));
    expect(Math.abs(nearest.tokens - 396_701)).toBeLessThan(10);
    expect(pools.filter(({ tokens }) => Math.abs(tokens - 396_701) < 20).map(({ stateSlots }) => stateSlots)).toContain(454);
  });
});
