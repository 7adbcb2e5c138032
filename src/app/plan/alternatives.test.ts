import { describe, expect, it } from 'vitest';
import { findGpu } from '../../capacity/gpus.ts';
import { findKnownModel } from '../../capacity/known-models.ts';
import { readFacts } from '../../capacity/read-facts.ts';
import { readModelConfig } from '../../capacity/read-model-config.ts';
import { drawRequests } from '../../twin/lengths.ts';
import { seededRandom } from '../../twin/seeded-random.ts';
import { findAlternatives, findNearestThatWorks, pricePolicy } from './alternatives.ts';
import { evaluate, isForbidden, type PlanBasis } from './candidate.ts';

const known = findKnownModel('moonshotai/Kimi-K2.5');
if (known === undefined) throw new Error('the table has lost Kimi-K2.5');
const BASE = ['--tp', '8', '--kv-cache-dtype', 'bf16'];
const { facts } = readFacts({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04 });
const RULE = { forbid: { kvCache: 'below-16-bit' as const }, because: 'FP8 KV degrades it', by: 'model owner' };

function basis(over: Partial<PlanBasis> = {}): PlanBasis {
  const output = { kind: 'lognormal', mean: 4000, sigma: 0.83, most: 16_384 } as const;
  const prompt = { kind: 'fixed', tokens: 500 } as const;
  const requests = drawRequests({ count: 2000, prompt, output, maxNewTokens: 16_384, commonPrefixTokens: 0 }, seededRandom(1));
  return {
    ...{
      engine: 'sglang',
      version: '0.5.8',
      shape: readModelConfig(known as NonNullable<typeof known>),
      gpu: findGpu('RTX PRO 6000'),
    },
    observations: [{ facts, flags: [...BASE, '--mem-fraction-static', '0.88'], source: 'a log' }],
    ...{ policy: [RULE], measured: undefined, load: { requests, inFlight: 150, longestRequestTokens: 17_000 } },
    ...over,
  };
}

const launch = (fraction: string) => [...BASE, '--mem-fraction-static', fraction];

describe('findAlternatives', () => {
  const base = evaluate(basis(), launch('0.88'));
  const found = findAlternatives(basis(), base);

  it('ranks only launches that live and gain, the fastest first', () => {
    const speeds = found.map(({ candidate }) => candidate.steady?.tokensPerSecond ?? 0);
    expect(speeds).toEqual([...speeds].sort((a, b) => b - a));
    expect(Math.min(...speeds)).toBeGreaterThan(1.02 * (base.steady?.tokensPerSecond ?? 0));
    expect(found.map(({ candidate }) => candidate.prediction.verdict)).toEqual(found.map(() => 'fits'));
  });

  it('marks what policy forbids, and offers lossless launches beside it', () => {
    const forbidden = found.filter(({ candidate }) => isForbidden(candidate));
    expect(forbidden.map(({ changes }) => changes.join(' '))).toEqual([expect.stringContaining('fp8_e4m3')]);
    expect(forbidden.map(({ effect }) => effect)).toEqual(['numerics']);
    expect(found.filter(({ effect }) => effect !== 'numerics').length).toBeGreaterThan(2);
  });

  it('counts the attention weights that DP attention copies, also where weights were measured without it', () => {
    const dp = found.find(({ changes }) => changes.includes('--dp-size'));
    expect(dp?.candidate.prediction.weightsGiBPerGpu).toBeGreaterThan(72.33 + 0.5);
  });

  it('offers what the version of the engine has, and no more', () => {
    const newer = basis({ version: '0.5.16' });
    const offered = findAlternatives(newer, evaluate(newer, launch('0.88'))).map(({ changes }) => changes.join(' '));
    expect(offered.some((flags) => flags.includes('--dcp-size'))).toBe(true);
    expect(found.some(({ changes }) => changes.includes('--dcp-size'))).toBe(false); // 0.5.8
  });
});

describe('findNearestThatWorks', () => {
  it.each(['0.93', '0.70'])('brings %s to a launch that lives', (fraction) => {
    const nearest = findNearestThatWorks(basis(), evaluate(basis(), launch(fraction)));
    const [flag, value] = nearest?.changes ?? [];
    expect(flag).toBe('--mem-fraction-static');
    const [from, to] = [Number(fraction), Number(value)];
    expect(from > 0.9 ? to < from : to > from).toBe(true);
    // One step nearer does not live: this is the nearest.
    const nearer = evaluate(basis(), launch((to + (from > 0.9 ? 0.01 : -0.01)).toFixed(2)));
    expect(
      nearer.prediction.verdict === 'fits' && nearer.prediction.freeAfterGraphsGiB >= nearer.prediction.prefillNeedGiB.high,
    ).toBe(false);
  });
});

describe('a launch of vLLM', () => {
  const vllm = (name: string, gpu: string) => {
    const model = findKnownModel(name);
    if (model === undefined) throw new Error(`the table has lost ${name}`);
    const of = { engine: 'vllm', version: '0.21.0', shape: readModelConfig(model), gpu: findGpu(gpu), observations: [] } as const;
    return basis({ ...of, load: { ...basis().load, longestRequestTokens: 4000 } });
  };

  it('whose context does not fit is brought to a shorter one', () => {
    const tight = vllm('meta-llama/Llama-3.1-8B-Instruct', 'RTX 3090');
    const base = evaluate(tight, []);
    expect(base.prediction.verdict).toBe('refuses-to-start');
    const nearest = findNearestThatWorks(tight, base);
    expect(nearest?.changes[0]).toBe('--max-model-len');
    expect(nearest?.candidate.prediction.verdict).toBe('fits');
    expect(Number(nearest?.changes[1])).toBeLessThanOrEqual(nearest?.candidate.prediction.poolTokens ?? 0);
  });

  it('shares positions over no more ranks than hold the same KV', () => {
    const heads = vllm('Qwen/Qwen3-235B-A22B', 'H200'); // 4 KV heads: two copies on eight ranks
    const offered = findAlternatives(heads, evaluate(heads, ['--tensor-parallel-size', '8'])).flatMap(({ changes }) => changes);
    expect(offered).not.toContain('4');
    expect(offered).not.toContain('8');
  });
});

describe('pricePolicy', () => {
  it('prices a rule by the best launch that breaks it, where that is the better one', () => {
    const base = evaluate(basis(), launch('0.88'));
    const fp8 = findAlternatives(basis(), base).filter(({ candidate }) => isForbidden(candidate));
    expect(pricePolicy(base, fp8)).toMatchObject({ because: RULE.because, by: RULE.by });
    expect(pricePolicy(base, [])).toBeUndefined();
  });
});
