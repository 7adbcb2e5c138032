/**
 * How long answers and prompts are: what people write (`lognormal:mean=4000,sigma=0.8,max=8192`), draws from it, and the
 * moments that decide how many requests run at once.
 */
import type { Random } from '../host/host.ts';
import type { TwinRequest } from './load.ts';

export type Lengths =
  | { readonly kind: 'fixed'; readonly tokens: number }
  | { readonly kind: 'uniform'; readonly least: number; readonly most: number }
  /** `mean` is the mean length itself, before `most` cuts it; `sigma` that of its logarithm. */
  | { readonly kind: 'lognormal'; readonly mean: number; readonly sigma: number; readonly most: number }
  | { readonly kind: 'empirical'; readonly tokens: readonly number[] };

export interface LengthsProblem {
  readonly problem: string;
}

const FORMS = 'lognormal:mean=4000,sigma=0.8[,max=8192], uniform:min=200,max=8000, fixed:tokens=4000';
const KEYS = { fixed: ['tokens'], uniform: ['min', 'max'], lognormal: ['mean', 'sigma', 'max'] } as const;

/** `lognormal:4000,0.8` in the order of the keys, or with `key=value`. */
export function parseLengths(text: string): Lengths | LengthsProblem {
  const [kind = '', rest = ''] = splitOnce(text.trim(), ':');
  if (!(kind === 'fixed' || kind === 'uniform' || kind === 'lognormal')) return { problem: `"${text}" is none of: ${FORMS}` };
  const keys: readonly string[] = KEYS[kind];
  const values: Record<string, number> = {};
  for (const [at, part] of rest.split(',').entries()) {
    const [left = '', right] = splitOnce(part, '=');
    const key = right === undefined ? keys[at] : left.trim();
    const written = (right ?? left).trim();
    const value = Number(written.replaceAll('_', ''));
    if (key === undefined || !keys.includes(key)) return { problem: `"${part}" in "${text}": ${kind} takes ${keys.join(', ')}` };
    if (written === '' || !Number.isFinite(value) || value < 0)
      return { problem: `"${part}" in "${text}" is not a number from 0 on` };
    values[key] = value;
  }
  return build(kind, values, text);
}

function build(kind: keyof typeof KEYS, values: Record<string, number>, text: string): Lengths | LengthsProblem {
  const { tokens = 0, mean = 0, sigma, min = 1, max = Number.POSITIVE_INFINITY } = values;
  if (kind === 'fixed')
    return tokens >= 1 ? { kind, tokens: Math.round(tokens) } : { problem: `"${text}" has no tokens of 1 or more` };
  if (kind === 'uniform') {
    const fits = min >= 1 && max >= min && Number.isFinite(max);
    return fits
      ? { kind, least: Math.round(min), most: Math.round(max) }
      : { problem: `"${text}" needs min from 1 on and max from min on` };
  }
  if (mean < 1 || sigma === undefined || max < 1)
    return { problem: `"${text}" needs a mean of 1 or more, a sigma, and a max of 1 or more if any` };
  return { kind, mean, sigma, most: max };
}

function splitOnce(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/** sigma of a lognormal whose standard deviation is `cv` times its mean. */
export const sigmaOfCv = (cv: number): number => Math.sqrt(Math.log(1 + cv * cv));

export function drawLength(lengths: Lengths, random: Random): number {
  switch (lengths.kind) {
    case 'fixed':
      return lengths.tokens;
    case 'uniform':
      return lengths.least + Math.floor(random() * (lengths.most - lengths.least + 1));
    case 'empirical':
      return lengths.tokens[Math.floor(random() * lengths.tokens.length)] ?? 1;
    case 'lognormal': {
      const drawn = lengths.mean * Math.exp(lengths.sigma * normal(random) - lengths.sigma ** 2 / 2);
      return Math.max(1, Math.round(Math.min(drawn, lengths.most)));
    }
  }
}

/** Box–Muller; two draws each, so that a seed gives the same lengths whatever the distribution's figures are. */
function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  return radius * Math.cos(2 * Math.PI * random());
}

/** Requests with independent lengths and nothing shared but a common beginning, if any. */
export interface DrawnLoad {
  readonly count: number;
  readonly prompt: Lengths;
  readonly output: Lengths;
  readonly maxNewTokens: number;
  readonly commonPrefixTokens: number;
}

export function drawRequests(load: DrawnLoad, random: Random): TwinRequest[] {
  const shared = load.commonPrefixTokens > 0 ? [{ key: 'common', tokens: load.commonPrefixTokens }] : [];
  return Array.from({ length: load.count }, (_, at) => ({
    id: String(at),
    promptTokens: Math.max(drawLength(load.prompt, random), load.commonPrefixTokens + 1),
    outputTokens: Math.min(drawLength(load.output, random), load.maxNewTokens),
    maxNewTokens: load.maxNewTokens,
    shared,
  }));
}

/**
 * Mean context of a running request at a random moment: E[I·L]/E[L] + ½·E[L²]/E[L], each request counted for as long as it
 * runs. Not the mean final length: with spread lengths the long ones hold the pool, with equal ones half of the answer is not there yet.
 */
export function liveContextTokens(requests: readonly Pick<TwinRequest, 'promptTokens' | 'outputTokens'>[]): number {
  let [weight, context] = [0, 0];
  for (const { promptTokens, outputTokens } of requests) {
    weight += outputTokens;
    context += outputTokens * (promptTokens + outputTokens / 2);
  }
  return weight === 0 ? 0 : context / weight;
}

/** Mean `max_tokens` that a running request may still ask for, clipped as the scheduler clips it. */
export function meanAheadTokens(requests: readonly Pick<TwinRequest, 'outputTokens' | 'maxNewTokens'>[], clip: number): number {
  let [weight, ahead] = [0, 0];
  for (const { outputTokens, maxNewTokens } of requests) {
    // Σ over p = 0 … L−1 of min(max − p, clip): clip while p ≤ max − clip, then falling by one each token.
    const flat = Math.min(outputTokens, Math.max(0, maxNewTokens - clip));
    const falling = outputTokens - flat;
    ahead += flat * clip + falling * (Math.min(maxNewTokens, clip) - falling / 2);
    weight += outputTokens;
  }
  return weight === 0 ? 0 : ahead / weight;
}
