/**
 * Flags, a version and what is true of the machine → what this engine will have: pool, headroom, and where it fails. Pure but
 * for a model given as a folder. The arithmetic is capacity's; the scenario only says the facts it starts from.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Fields } from '../../../capacity/config-fields.ts';
import type { EngineLaunch, PlannedEngine } from '../../../capacity/engine-launch.ts';
import { estimateGraphsGiB, guessFreeBeforeLoad } from '../../../capacity/estimate-memory.ts';
import type { Facts, Measured } from '../../../capacity/facts.ts';
import type { Gpu } from '../../../capacity/gpu.ts';
import { findGpu } from '../../../capacity/gpus.ts';
import { findKnownModel } from '../../../capacity/known-models.ts';
import type { ModelShape } from '../../../capacity/model-shape.ts';
import { planLaunch, prepareLaunch } from '../../../capacity/plan-launch.ts';
import type { Prediction } from '../../../capacity/prediction.ts';
import { readModelConfig } from '../../../capacity/read-model-config.ts';
import type { ParsedFlags } from '../../../engine/launch-flags.ts';
import type { LaunchScenario } from './machine-scenario.ts';

export interface LifeQuestion {
  readonly engine: PlannedEngine;
  readonly version: string;
  readonly flags: ParsedFlags;
  /** A name on the hub, or a folder with config.json. */
  readonly model: string;
  readonly scenario: LaunchScenario;
  /** What others hold of the fullest GPU, GiB. */
  readonly othersGiB: number;
}

export interface LifePlan {
  readonly launch: EngineLaunch;
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  readonly prediction: Prediction;
  /** What capture takes for decoding and for prefills; workspaces and samplers have lain beside it before. */
  readonly captureGiB: number;
  readonly prefillGraphsGiB: number;
  /** What a full prefill chunk takes at run time. */
  readonly prefillNeedGiB: number;
}

/** undefined: nothing is known of such a model. */
export function planLife(question: LifeQuestion): LifePlan | undefined {
  const { engine, version, scenario } = question;
  const shape = findShape(question);
  if (shape === undefined) return undefined;
  const gpu = findGpu(scenario.machine.gpu);
  const flags = withTrueKvType(question);
  const base = { engine, version, shape, gpu };
  const facts = factsOf(question, guessFreeBeforeLoad(gpu, prepareLaunch(base, flags).launch).value);
  const source = 'the scenario';
  const first = planLaunch({ ...base, flags, observations: [{ facts, source }] });
  const graphsGiB = scaleGraphs(question, first, shape, gpu);
  const free = first.prediction.freeAfterGraphsGiB + first.prediction.graphsGiB - graphsGiB - fragmentsOf(scenario, first.launch);
  const own: Facts = engine === 'sglang' ? { ...facts, freeAfterGraphsGiB: exact(free) } : facts;
  const whole = planLaunch({ ...base, flags, observations: [{ facts: own, source }] });
  const { prediction } = whole;
  const estimate = (parts: Partial<EngineLaunch>) => estimateGraphsGiB(shape, { ...whole.launch, ...parts });
  const scale = graphsGiB / Math.max(1e-9, estimate({})); // nothing is estimated where nothing is captured
  const bare = estimate({ graphBatches: [], hasPrefillGraphs: false });
  const asked = question.flags.values['kv-cache-dtype'];
  const kvType = { ...whole.launch.kvType, asked: typeof asked === 'string' ? asked : 'auto' };
  const need = scenario.machine.prefillNeedGiB ?? (prediction.prefillNeedGiB.low + prediction.prefillNeedGiB.high) / 2;
  return {
    launch: { ...whole.launch, kvType },
    shape,
    gpu,
    prediction,
    captureGiB: scale * (estimate({ hasPrefillGraphs: false }) - bare),
    prefillGraphsGiB: scale * (estimate({}) - estimate({ hasPrefillGraphs: false })),
    prefillNeedGiB: need,
  };
}

function findShape({ model, scenario }: LifeQuestion): ModelShape | undefined {
  const { model: standIn, kvCacheAlgorithm } = scenario.machine;
  const shape = readFolder(standIn ?? model) ?? readKnown(standIn ?? model);
  if (shape === undefined || kvCacheAlgorithm === undefined) return shape;
  return { ...shape, quantisation: { ...shape.quantisation, kvCacheAlgorithm } };
}

function readFolder(folder: string): ModelShape | undefined {
  const path = join(folder, 'config.json');
  if (!existsSync(path)) return undefined;
  return readModelConfig({ name: folder, config: JSON.parse(readFileSync(path, 'utf8')) as Fields, source: path });
}

/** Local copies keep the name as their last folder. */
function readKnown(name: string): ModelShape | undefined {
  const known = findKnownModel(name) ?? findKnownModel(name.replace(/\/+$/, '').split('/').at(-1) ?? '');
  return known === undefined ? undefined : readModelConfig(known);
}

function withTrueKvType({ flags, scenario: { hidesKvType } }: LifeQuestion): ParsedFlags {
  if (hidesKvType === false) return flags;
  return { ...flags, values: { ...flags.values, 'kv-cache-dtype': hidesKvType === true ? 'fp8_e4m3' : hidesKvType } };
}

function factsOf({ engine, scenario: { machine }, othersGiB }: LifeQuestion, guessedFree: number): Facts {
  const weights = machine.weightsGiB === undefined ? {} : { weightsGiBPerGpu: exact(machine.weightsGiB) };
  if (engine === 'sglang')
    return { freeBeforeLoadGiB: exact((machine.freeBeforeLoadGiB ?? guessedFree) - othersGiB), ...weights };
  return {
    ...weights,
    ...(machine.graphsGiB === undefined ? {} : { graphsGiB: exact(machine.graphsGiB) }),
    ...(machine.activationsGiB === undefined ? {} : { activationsGiB: exact(machine.activationsGiB) }),
    ...(machine.outsideTorchGiB === undefined ? {} : { outsideTorchGiB: exact(machine.outsideTorchGiB) }),
  };
}

/** A scenario's fact is the truth, not a rounded print of it. */
function exact(value: number): Measured {
  return { value, halfWidth: 0 };
}

/** What the scenario says of a launch with the default batch sizes, for the sizes of this one. */
function scaleGraphs(
  question: LifeQuestion,
  own: { launch: EngineLaunch; prediction: Prediction },
  shape: ModelShape,
  gpu: Gpu,
): number {
  const { engine, version, flags, scenario } = question;
  const said = scenario.machine.graphsGiB;
  if (said === undefined || engine === 'vllm') return own.prediction.graphsGiB;
  const plain = Object.fromEntries(Object.entries(flags.values).filter(([name]) => !/graph|max-running-requests/.test(name)));
  const { launch: standard } = prepareLaunch({ engine, version, shape, gpu }, { ...flags, values: plain });
  return (said * estimateGraphsGiB(shape, own.launch)) / estimateGraphsGiB(shape, standard);
}

function fragmentsOf({ machine }: LaunchScenario, launch: EngineLaunch): number {
  const found = Object.entries(machine.fragmentsGiB).find(([fraction]) => Number(fraction) === launch.memoryFraction);
  return found?.[1] ?? 0;
}
