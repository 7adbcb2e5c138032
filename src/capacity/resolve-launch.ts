/**
 * Flags as people write them, a model and a GPU → the launch as the engine of that version would resolve it. Pure.
 * Promises: what is assumed, defaulted or rewritten is said in `notes`; what the engine would refuse is in `refusals`.
 */
import type { EngineLaunch, PlannedEngine } from './engine-launch.ts';
import type { LaunchQuestion } from './launch-question.ts';
import { resolveSglangLaunch } from './resolve-sglang.ts';
import { resolveVllmLaunch } from './resolve-vllm.ts';

/** The newest versions that the formulas were checked against. */
export const NEWEST: Readonly<Record<PlannedEngine, string>> = { sglang: '0.5.18', vllm: '0.21.0' };

export function resolveLaunch(question: LaunchQuestion): EngineLaunch {
  const isAssumed = !/^v?\d+\.\d+/.test(question.version.trim());
  const version = isAssumed ? NEWEST[question.engine] : question.version.trim().replace(/^v/, '');
  const known = { ...question, version };
  const launch = question.engine === 'sglang' ? resolveSglangLaunch(known) : resolveVllmLaunch(known);
  const name = question.engine === 'sglang' ? 'SGLang' : 'vLLM';
  const notes = isAssumed ? [`no version of ${name} was given: ${version} is assumed`] : [];
  return { ...launch, isVersionAssumed: isAssumed, notes: [...notes, ...launch.notes] };
}
