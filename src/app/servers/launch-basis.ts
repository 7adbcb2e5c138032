/**
 * What the arithmetic needs to know of a launch: the model's shape, the GPU, the engine's version, and what earlier launches
 * measured. Nothing of it is needed to start a server: where it cannot be had, the plan says so and less is predicted.
 */
import { AerieError } from '../../base/errors.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Gpu } from '../../capacity/gpu.ts';
import { describeGpu, findGpu } from '../../capacity/gpus.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import { type MeasuredLaunch, type Plan, planLaunch } from '../../capacity/plan-launch.ts';
import type { Machine } from '../../machine/machine.ts';
import { parseGiven } from '../../server/recovery/changes.ts';
import type { Flags, RecoveryBasis } from '../../server/recovery/recovery.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { obtainShape } from '../plan/obtain-shape.ts';
import { recallLaunches } from '../plan/remembered.ts';

export interface LaunchBasis {
  readonly engine: PlannedEngine;
  /** '' = not said. */
  readonly version: string;
  readonly shape: ModelShape | undefined;
  readonly gpu: Gpu | undefined;
  readonly observations: readonly MeasuredLaunch[];
  /** What is not known, one sentence each. */
  readonly unknown: readonly string[];
}

export async function obtainBasis(
  run: RunSpec,
  server: ServerSpec,
  machine: Machine,
  context: OperationContext,
): Promise<LaunchBasis> {
  const engine = server.engine === 'vllm' ? 'vllm' : 'sglang';
  const version = server.engineVersion;
  const unknown: string[] = [];
  const shape = await obtainShape(run.model, context, machine).catch((thrown: unknown) => {
    unknown.push(`the shape of ${run.model}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    return undefined;
  });
  const gpu = server.gpu === '' ? await gpuOf(machine) : findGpu(server.gpu);
  if (gpu === undefined) unknown.push(`the GPU: nvidia-smi does not name one on ${machine.name}; write gpu: in the run file`);
  const observations =
    gpu === undefined ? [] : await recallLaunches({ model: run.model, engine, version, gpu: gpu.name }, context.host.env);
  return { engine, version, shape, gpu, observations, unknown };
}

/** The table's card where its name is known there, else one of the memory that its driver reports. */
async function gpuOf(machine: Machine): Promise<Gpu | undefined> {
  const look = await machine.gpus();
  const first = look.kind === 'read' ? look.gpus[0] : undefined;
  if (first === undefined) return undefined;
  try {
    return findGpu(first.name);
  } catch {
    return describeGpu(first.name, first.totalMiB);
  }
}

export function recoveryBasisOf({ shape, gpu, observations }: LaunchBasis): RecoveryBasis | undefined {
  return shape === undefined || gpu === undefined ? undefined : { shape, gpu, observations };
}

/** undefined where the model or the GPU is not known. What earlier launches measured is left out where it contradicts these flags. */
export function planOf(basis: LaunchBasis, flags: Flags): Plan | undefined {
  const { engine, version, shape, gpu, observations } = basis;
  if (shape === undefined || gpu === undefined) return undefined;
  const launch = { engine, version, shape, gpu, flags: parseGiven(engine, flags) };
  try {
    return planLaunch({ ...launch, observations });
  } catch (thrown) {
    if (!(thrown instanceof AerieError) || thrown.code !== 'facts.contradict') throw thrown;
    return planLaunch({ ...launch, observations: [] });
  }
}
