/**
 * What one launch will hold and whether it will live, from a model's shape, a GPU, the resolved flags, and whatever has been measured. Pure.
 * Promises: the same input gives the same answer; every figure is per GPU; facts replace guesses, and the answer says from where each is.
 */
import { missingField } from './config-fields.ts';
import type { PlanInput } from './plan-input.ts';
import { predictSglang } from './predict-sglang.ts';
import { predictVllm } from './predict-vllm.ts';
import type { Prediction } from './prediction.ts';

export function predict(input: PlanInput): Prediction {
  if (!input.shape.caches.some(({ kind }) => kind !== 'state'))
    throw missingField(input.shape.name, ['a layer that stores keys and values']);
  return input.launch.engine === 'sglang' ? predictSglang(input) : predictVllm(input);
}
