/**
 * What SGLang takes where a flag is not given, by version and GPU: prefill chunk, decode graphs, static memory fraction. Pure.
 * Sources: `server_args.py` of the tags 0.4.6.post5, 0.4.10.post2, 0.5.2, 0.5.8 and 0.5.18. Sizes in MiB, as the engine reckons.
 */
import { isAtLeast } from '../engine/version.ts';
import type { ModelShape } from './model-shape.ts';

export interface SglangQuestion {
  readonly version: string;
  readonly memoryMiB: number;
  readonly tp: number;
  readonly pp: number;
  readonly dp: number;
  readonly isDpAttention: boolean;
  readonly shape: ModelShape;
  readonly isLanguageOnly: boolean;
  readonly speculative: string;
}

const KIB = 1024;

function from(question: SglangQuestion, ...least: [number, number, number]): boolean {
  return isAtLeast(question.version, least) ?? true; // a version that is not to be read counts as the newest
}

export function defaultChunk(question: SglangQuestion): number {
  const { memoryMiB } = question;
  if (!from(question, 0, 4, 7)) return memoryMiB < 25_000 ? 2048 : 8192;
  if (!from(question, 0, 5, 3)) return memoryMiB < 35 * KIB ? 2048 : memoryMiB < 160 * KIB ? 8192 : 16_384;
  if (memoryMiB < 35 * KIB) return 2048;
  return memoryMiB < 60 * KIB ? 4096 : memoryMiB < 160 * KIB ? 8192 : 16_384;
}

export function defaultGraphMax(question: SglangQuestion): number {
  const { memoryMiB, tp } = question;
  if (!from(question, 0, 5, 3)) {
    const small = from(question, 0, 4, 7) ? 35 * KIB : 25_000;
    if (memoryMiB < small) return tp < 4 ? 8 : 80;
    return memoryMiB > 96 * KIB ? 256 : 160;
  }
  if (memoryMiB < 20 * KIB) return 8;
  if (memoryMiB < 35 * KIB) return tp < 4 ? 24 : 80;
  if (memoryMiB < 60 * KIB) return tp < 4 ? 32 : 160;
  return memoryMiB >= 160 * KIB || tp >= 4 ? 512 : 256;
}

/** Batch sizes with a decode graph: close together where batches are small. */
export function listGraphBatches(version: string, asked: number): number[] {
  const most = Math.min(asked, MOST_SIZES);
  const sizes =
    (isAtLeast(version, [0, 5, 3]) ?? true)
      ? [1, 2, 4, 8, 12, ...steps(16, 256, 8), ...steps(272, 496, 16), ...steps(512, most, 32)]
      : [1, 2, 4, ...steps(8, Math.max(160, most), 8)];
  const kept = sizes.filter((size) => size <= most);
  return kept.length > 0 && !kept.includes(most) ? [...kept, most] : kept;
}

/** No engine captures or prefills more at once; keeps a slip of the pen from filling the memory. */
const MOST_SIZES = 2 ** 20;

function steps(first: number, last: number, step: number): number[] {
  return Array.from({ length: Math.max(0, Math.floor((last - first) / step) + 1) }, (_, at) => first + at * step);
}

export interface FractionInput {
  readonly chunk: number;
  readonly graphMax: number;
  readonly hasPrefillGraphs: boolean;
}

/** The static fraction SGLang chooses, and why. */
export function defaultFraction(question: SglangQuestion, input: FractionInput): { fraction: number; because: string } {
  const bare = fractionBeforeVision(question, input);
  const factor = visionFactor(question);
  const vision = factor === 1 ? '' : `, × ${factor.toFixed(4)} for the vision tower`;
  return {
    fraction: bare.fraction * factor,
    because: `SGLang ${question.version} chooses ${(bare.fraction * factor).toFixed(3)}: ${bare.because}${vision}`,
  };
}

function fractionBeforeVision(question: SglangQuestion, input: FractionInput): { fraction: number; because: string } {
  const { memoryMiB } = question;
  if (!from(question, 0, 4, 7)) return oldFraction(question);
  const reserve = from(question, 0, 5, 3) ? reserveByUse(question, input) : reserveByCard(question);
  const fraction = Math.round(((memoryMiB - reserve) / memoryMiB) * 1000) / 1000;
  return { fraction, because: `${Math.round(reserve)} MiB of ${memoryMiB} kept free` };
}

function oldFraction({ memoryMiB, tp, pp }: SglangQuestion): { fraction: number; because: string } {
  const ranks = tp * pp;
  const byRanks = ranks >= 16 ? 0.79 : ranks >= 8 ? 0.81 : ranks >= 4 ? 0.85 : ranks >= 2 ? 0.87 : 0.88;
  const fraction = memoryMiB <= 81_920 ? byRanks : 0.88;
  if (memoryMiB <= 96 * KIB) return { fraction, because: `${ranks} GPUs of ${memoryMiB} MiB` };
  const raised = Math.min(fraction + (48 * KIB * (1 - fraction)) / memoryMiB, (memoryMiB - 18 * KIB) / memoryMiB);
  return { fraction: raised, because: `a card of ${memoryMiB} MiB` };
}

/** 0.4.7 to 0.5.2. */
function reserveByCard({ memoryMiB, tp, pp, speculative, isDpAttention }: SglangQuestion): number {
  const ranks = tp * pp;
  const base =
    memoryMiB < 35 * KIB
      ? 2.8 + ranks / 10
      : memoryMiB < 90 * KIB
        ? 9.5 + ranks / 2
        : memoryMiB < 160 * KIB
          ? 12 + ranks / 2
          : 32;
  const draft = speculative === '' ? 0 : speculative === 'STANDALONE' ? 6 : 2;
  return (base + draft + (isDpAttention ? 4 : 0)) * KIB;
}

/** From 0.5.3: what chunk, graphs and parallel ranks are thought to need. */
function reserveByUse(question: SglangQuestion, { chunk, graphMax, hasPrefillGraphs }: FractionInput): number {
  const { memoryMiB, tp, pp, dp, isDpAttention, speculative, shape } = question;
  let reserve = 512 + 1.5 * Math.max(chunk, 2048) + 2 * graphMax + ((tp * pp) / 8) * KIB;
  if (isDpAttention) reserve += 3 * graphMax * dp + (graphMax > 300 ? 1.5 * graphMax * dp : 0);
  if (hasPrefillGraphs) reserve += shape.caches.some(({ kind }) => kind === 'latent') ? 1.5 * KIB : 8 * countPrefillGraphs(chunk);
  if (memoryMiB > 60 * KIB) reserve = Math.max(reserve, 10 * KIB);
  // From 0.5.14 the draft's weights are loaded before the pool is sized.
  if (speculative !== '' && !from(question, 0, 5, 14))
    reserve += (speculative === 'STANDALONE' ? 6 : from(question, 0, 5, 12) ? 4 : 2) * KIB;
  return reserve;
}

/** Prompt lengths with a prefill graph: 4 to 32 by 4, to 256 by 16, to 512 by 32, to 1,024 by 64, to 4,096 by 256, beyond by 512. */
export function countPrefillGraphs(chunk: number): number {
  const longest = Math.min(chunk, MOST_SIZES);
  const lists = [
    steps(4, 32, 4),
    steps(48, 256, 16),
    steps(288, 512, 32),
    steps(576, 1024, 64),
    steps(1280, 4096, 256),
    steps(4608, longest, 512),
  ];
  return lists.flat().filter((length) => length <= longest).length;
}

/** Models with a vision tower: 0.95, from 0.4.10 times a factor by the tower's size. Applied to the default alone. */
function visionFactor(question: SglangQuestion): number {
  const { vision } = question.shape;
  if (vision === undefined || question.isLanguageOnly) return 1;
  if (!from(question, 0, 4, 10)) return 0.95;
  const size = (vision.listedLayers * vision.hiddenSize ** 2) / (24 * 1024 ** 2); // against ViT-L/14
  return 0.95 * Math.min(1.05, Math.max(0.8, 1 - 0.1 * (size - 1)));
}
