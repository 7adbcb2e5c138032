/**
 * Step times from what a server was seen to do: points of (running requests, tokens per second, context) from a log or two
 * measurements. Few points cannot carry four unknowns, so published fits are the prior and each point moves it as far as its
 * own error allows. Asked for a batch far above the measured ones, the answer is a guess: median error 7 %, p90 21 % (docs/twin.md).
 */
import { leastSquares } from './least-squares.ts';
import { decodeBaseSeconds, type PrefillTime, paddedBatch, type StepTime } from './step-time.ts';

/** What one GPU reads in a step, and how fast. */
export interface StepShape {
  readonly denseBytes: number;
  readonly expertBytes: number;
  /** Experts per token ÷ experts; 0 = a dense model. */
  readonly expertShare: number;
  readonly bytesPerSecond: number;
  /** KV bytes of one token on one GPU. */
  readonly kvBytesPerToken: number;
}

export interface StepSample {
  readonly running: number;
  readonly tokensPerSecond: number;
  /** Σ over running requests; a log's `#token`. */
  readonly contextTokens: number;
  /** Tokens per step and request: the accepted length under speculation, else 1. */
  readonly tokensPerStep?: number;
  /** Prompt tokens computed meanwhile, per second: that time is no decode time. */
  readonly prefillTokensPerSecond?: number;
  readonly isEager?: boolean;
}

/** seconds = fixed + weights · (bytes ÷ bandwidth) + kv · (bytes ÷ bandwidth) + perRequest · running. */
export interface StepCoefficients {
  readonly fixedSeconds: number;
  readonly weights: number;
  readonly kv: number;
  readonly perRequestSeconds: number;
}

export interface Believed {
  readonly mean: StepCoefficients;
  readonly deviation: StepCoefficients;
}

/** Fits of four published model, GPU and engine sets of 15 points each. fixed and perRequest are those of NVLink machines. */
export const PUBLISHED: Believed = {
  mean: { fixedSeconds: 0.008, weights: 1.6, kv: 0.7, perRequestSeconds: 0.00008 },
  deviation: { fixedSeconds: 0.003, weights: 0.5, kv: 0.5, perRequestSeconds: 0.00008 },
};

/** Between cards on PCIe all-reduces are slower: the prior of a fixed cost and of a cost per request must reach further. */
export const PUBLISHED_PCIE: Believed = {
  mean: { ...PUBLISHED.mean, perRequestSeconds: 0.00016 },
  deviation: { ...PUBLISHED.deviation, fixedSeconds: 0.006, perRequestSeconds: 0.00016 },
};

/** A log's point is a mean of seconds to minutes with random lengths: 4 to 7 % of spread; 5 is taken. */
const RELATIVE_ERROR = 0.05;
/** Eager steps of the story's machine are 30 to 50 ms longer. */
const EAGER_SECONDS = 0.04;
/** 8.1K tokens/s at short contexts, 5.6K at 83K: the fit of four points of that machine. */
export const PCIE_PREFILL: PrefillTime = { perTokenSeconds: 1 / 8100, perTokenPairSeconds: 1.3e-9, leastSeconds: 0.015 };

export interface CalibrationInput {
  readonly samples: readonly StepSample[];
  readonly shape: StepShape;
  readonly graphBatchSizes: readonly number[];
  readonly prefill: PrefillTime;
  readonly believed?: Believed;
}

export interface Calibration {
  readonly stepTime: StepTime;
  readonly coefficients: StepCoefficients;
  readonly points: readonly { readonly sample: StepSample; readonly measuredSeconds: number; readonly fittedSeconds: number }[];
  /** Beyond this batch the step time is extrapolated. */
  readonly largestBatch: number;
}

export function calibrate(input: CalibrationInput): Calibration {
  const { samples, shape, prefill, graphBatchSizes } = input;
  const { mean, deviation } = input.believed ?? PUBLISHED;
  const measured = samples.map((sample) => stepSecondsOf(sample, prefill));
  const rows = samples.map((sample) => columnsOf(sample, shape, graphBatchSizes));
  const rest = measured.map((seconds, at) => seconds - (isEager(samples[at], graphBatchSizes) ? EAGER_SECONDS : 0));
  const solved = leastSquares(rows, rest, { mean: listOf(mean), deviation: listOf(deviation), relativeError: RELATIVE_ERROR });
  const [fixedSeconds = 0, weights = 0, kv = 0, perRequestSeconds = 0] = solved;
  const coefficients = { fixedSeconds, weights, kv, perRequestSeconds };
  const stepTime = stepTimeOf(coefficients, shape, prefill);
  const points = samples.map((sample, at) => ({
    sample,
    measuredSeconds: measured[at] ?? 0,
    fittedSeconds: stepSeconds(stepTime, graphBatchSizes, sample),
  }));
  return { stepTime, coefficients, points, largestBatch: Math.max(0, ...samples.map(({ running }) => running)) };
}

/** Two points and two unknowns: the fixed cost and the cost per request, where the other two factors are taken as known. */
export function solveTwoPoints(
  [first, second]: readonly [StepSample, StepSample],
  shape: StepShape,
  factors: Pick<StepCoefficients, 'weights' | 'kv'>,
): StepCoefficients | undefined {
  const rest = ({ running, tokensPerSecond, contextTokens }: StepSample) => {
    const [, weights = 0, kv = 0] = columnsOf({ running, tokensPerSecond, contextTokens }, shape, []);
    return running / tokensPerSecond - factors.weights * weights - factors.kv * kv;
  };
  if (first.running === second.running) return undefined;
  const perRequestSeconds = (rest(second) - rest(first)) / (second.running - first.running);
  const fixedSeconds = rest(first) - perRequestSeconds * first.running;
  return fixedSeconds < 0 || perRequestSeconds < 0 ? undefined : { fixedSeconds, ...factors, perRequestSeconds };
}

export function stepTimeOf(coefficients: StepCoefficients, shape: StepShape, prefill: PrefillTime): StepTime {
  const read = coefficients.weights / shape.bytesPerSecond;
  return {
    fixedSeconds: coefficients.fixedSeconds,
    denseSeconds: read * shape.denseBytes,
    expertSeconds: read * shape.expertBytes,
    expertShare: shape.expertShare,
    perRequestSeconds: coefficients.perRequestSeconds,
    perContextTokenSeconds: (coefficients.kv * shape.kvBytesPerToken) / shape.bytesPerSecond,
    eagerSeconds: EAGER_SECONDS,
    prefill,
  };
}

/** The same server with another KV type or width: only the reading of the cache changes. */
export function withKvBytes(time: StepTime, from: number, to: number): StepTime {
  return { ...time, perContextTokenSeconds: (time.perContextTokenSeconds * to) / from };
}

export function stepSeconds(
  time: StepTime,
  sizes: readonly number[],
  { running, contextTokens }: Pick<StepSample, 'running' | 'contextTokens'>,
): number {
  return decodeBaseSeconds(time, sizes, running) + time.perContextTokenSeconds * contextTokens;
}

/** Decode time of one step, prompt work taken out. */
function stepSecondsOf(sample: StepSample, prefill: PrefillTime): number {
  const { running, tokensPerSecond, tokensPerStep = 1, prefillTokensPerSecond = 0 } = sample;
  const decoding = Math.max(0.05, 1 - prefillTokensPerSecond * prefill.perTokenSeconds);
  return ((running * tokensPerStep) / tokensPerSecond) * decoding;
}

function isEager(sample: StepSample | undefined, sizes: readonly number[]): boolean {
  return sample?.isEager ?? (sizes.length > 0 && paddedBatch(sizes, sample?.running ?? 0) === undefined);
}

function columnsOf(sample: StepSample, shape: StepShape, sizes: readonly number[]): number[] {
  const batch = paddedBatch(sizes, sample.running) ?? sample.running;
  const touched = 1 - (1 - shape.expertShare) ** batch;
  const weights = (shape.denseBytes + shape.expertBytes * touched) / shape.bytesPerSecond;
  return [1, weights, (sample.contextTokens * shape.kvBytesPerToken) / shape.bytesPerSecond, batch];
}

const listOf = ({ fixedSeconds, weights, kv, perRequestSeconds }: StepCoefficients) => [
  fixedSeconds,
  weights,
  kv,
  perRequestSeconds,
];
