/**
 * A remedy of `diagnose`, asked of the capacity model: would the server live with that flag? Pure. Only where the log itself
 * holds what that takes (the flags, a model whose shape is known, memory measured before the load); else nothing is said.
 */

import { formatCount } from '../base/units.ts';
import type { PlannedEngine } from '../capacity/engine-launch.ts';
import { describeGpu } from '../capacity/gpus.ts';
import { findKnownModel, type KnownModel } from '../capacity/known-models.ts';
import { FLAG_TABLES, planLaunch } from '../capacity/plan-launch.ts';
import type { Prediction } from '../capacity/prediction.ts';
import { readModelConfig } from '../capacity/read-model-config.ts';
import type { LogFacts } from '../diagnosis/log-facts.ts';
import type { Remedy } from '../diagnosis/verdict.ts';
import { parseFlagWords } from '../engine/launch-flags.ts';
import { modelOf, observeLog, wordsOfLog } from './plan/observe.ts';

/** GiB of a card that are gone before the weights: context, kernels, communication (1.2 to 1.5 in public logs). */
const BEFORE_LOAD_GIB = 1.5;

/** A sentence to add to the remedy; undefined where nothing can be told. */
export function checkRemedy({ flag, value }: Remedy, log: LogFacts): string | undefined {
  const { engine, version = '', freeBeforeLoadGiB } = log;
  const words = wordsOfLog(log);
  const model = findModel(log);
  if (engine === undefined || words.length === 0 || model === undefined || freeBeforeLoadGiB === undefined) return undefined;
  // A flag whose value is left to the person cannot be tried.
  if (!flag.startsWith('--') || (value === '' && takesValue(flag, engine))) return undefined;
  const gpu = describeGpu('the GPU of the log', Math.round((freeBeforeLoadGiB + BEFORE_LOAD_GIB) * 1024));
  const measured = { ...observeLog(log, 'the log'), flags: words };
  const flags = [...words, flag, ...(value === '' ? [] : [value])];
  try {
    const { prediction } = planLaunch({ engine, version, shape: readModelConfig(model), gpu, flags, observations: [measured] });
    return describe(prediction);
  } catch {
    return undefined; // figures that no launch can have: the log was cut or changed
  }
}

function takesValue(flag: string, engine: PlannedEngine): boolean {
  return parseFlagWords([flag], FLAG_TABLES[engine]).problems.length > 0;
}

/** A hub name, or a folder of that name on the machine. */
function findModel(log: LogFacts): KnownModel | undefined {
  const name = modelOf(log);
  const parts = name.split('/').filter((part) => part !== '');
  return findKnownModel(name) ?? findKnownModel(parts.slice(-2).join('/')) ?? findKnownModel(parts.at(-1) ?? '');
}

function describe({ verdict, poolTokens, freeAfterGraphsGiB, because }: Prediction): string {
  if (verdict !== 'fits') return `By the log’s own figures that is not enough: ${because}.`;
  return `By the log’s own figures it then holds ${formatCount(poolTokens)} tokens and leaves ${freeAfterGraphsGiB.toFixed(1)} GiB after graph capture.`;
}
