/**
 * One plan from what a person gives: engine, version, model, GPU, flags, and what has been measured. Pure; the `plan` command, its sweeps
 * and the tests all come this way.
 */
import { type FlagTable, type ParsedFlags, parseFlagWords } from '../engine/launch-flags.ts';
import { SGLANG_FLAGS } from '../engine/sglang/flags.ts';
import { VLLM_FLAGS } from '../engine/vllm/flags.ts';
import type { EngineLaunch, PlannedEngine } from './engine-launch.ts';
import type { Facts } from './facts.ts';
import type { Gpu } from './gpu.ts';
import type { ModelShape } from './model-shape.ts';
import { predict } from './predict.ts';
import type { Prediction } from './prediction.ts';
import { resolveLaunch } from './resolve-launch.ts';
import { quantiseOnline } from './weights-per-gpu.ts';

export const FLAG_TABLES: Readonly<Record<PlannedEngine, FlagTable>> = { sglang: SGLANG_FLAGS, vllm: VLLM_FLAGS };

export interface PlanRequest {
  readonly engine: PlannedEngine;
  /** '' = not known. */
  readonly version: string;
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  /** Words as on a command line, or flags that are parsed already. */
  readonly flags: readonly string[] | ParsedFlags;
  readonly observations?: readonly MeasuredLaunch[];
  readonly longestRequestTokens?: number;
}

/** Facts of the very launch that is asked about, or of another one with its own flags. */
export interface MeasuredLaunch {
  readonly facts: Facts;
  readonly flags?: readonly string[] | ParsedFlags;
  readonly source: string;
}

export interface Plan {
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  readonly launch: EngineLaunch;
  readonly prediction: Prediction;
  /** No flag has the engine quantise them anew while it loads them. */
  readonly areWeightsAsPublished: boolean;
}

export function planLaunch(request: PlanRequest): Plan {
  const { engine, version, gpu, longestRequestTokens } = request;
  const { launch, shape } = prepareLaunch(request, request.flags);
  const observations = (request.observations ?? []).map(({ facts, flags, source }) => ({
    facts,
    source,
    ...(flags === undefined ? {} : { launch: prepareLaunch({ engine, version, shape: request.shape, gpu }, flags).launch }),
  }));
  const prediction = predict({
    shape,
    gpu,
    launch,
    observations,
    ...(longestRequestTokens === undefined ? {} : { longestRequestTokens }),
  });
  const areWeightsAsPublished = shape.quantisation.method === request.shape.quantisation.method;
  return { shape, gpu, launch, prediction, areWeightsAsPublished };
}

export function prepareLaunch(
  { engine, version, shape, gpu }: Pick<PlanRequest, 'engine' | 'version' | 'shape' | 'gpu'>,
  given: readonly string[] | ParsedFlags,
): { launch: EngineLaunch; shape: ModelShape } {
  const flags = 'unread' in given ? given : parseFlagWords(given, FLAG_TABLES[engine]);
  const method = flags.values['quantization'];
  const loaded = quantiseOnline(shape, typeof method === 'string' ? method : '');
  return { launch: resolveLaunch({ engine, version, flags, shape: loaded, gpu }), shape: loaded };
}
