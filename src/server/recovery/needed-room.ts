/**
 * How much must stay free beside the pool: what the arithmetic expects, and what the launches that died have shown. Pure.
 * Promise: each death raises what is asked for, so that the same shortage does not end two launches in a row.
 */
import type { Plan } from '../../capacity/plan-launch.ts';
import type { Interval } from '../../capacity/prediction.ts';
import { countedTries } from './bounds.ts';
import type { Predict } from './predict-candidate.ts';
import type { LaunchTry, RecoveryQuestion } from './recovery.ts';

/** Memory ran out in a batch: what was free is less than a batch needs. */
const AT_WORK: readonly string[] = ['runtime-oom-activation', 'gpu-out-of-memory'];
/** Memory ran out beside the pool before the server was ready: what was to be left is not there. (The table of requests is known exactly.) */
const AT_START: readonly string[] = ['cuda-graph-capture-oom', 'attention-workspace-oom', 'kv-pool-allocation-oom'];
/** From the least to the most that a prefill is likely to need (`capacity/estimate-memory.ts`: 0.7 and 1.15 of the middle). */
const LEAST_TO_MOST = 1.15 / 0.7;
/** vLLM measures its largest step and sets it aside; what stays outside is for fragments and communication, 1 GiB at most. */
const OUTSIDE_GIB: Interval = { low: 0.5, high: 1 };

export type RoomFor = (plan: Plan) => Interval;

export function neededRoom(question: RecoveryQuestion, predict: Predict): RoomFor {
  const deaths = countedTries(question.tries).flatMap((one) => readDeath(one, predict));
  return (plan) => {
    const need = question.engine === 'vllm' ? OUTSIDE_GIB : plan.prediction.prefillNeedGiB;
    const chunk = chunkOf(plan);
    const shown = deaths.map((death) => death.neededGiB * (death.chunk > 0 && chunk > 0 ? chunk / death.chunk : 1));
    const missing = Math.max(0, ...deaths.map(({ missingGiB }) => missingGiB));
    const least = Math.max(need.low, ...shown);
    const most = Math.max(need.high, ...shown.map((gib) => gib * LEAST_TO_MOST));
    return { low: least + missing, high: most + missing };
  };
}

interface Death {
  /** A batch needed more than this, GiB. */
  readonly neededGiB: number;
  /** Tokens of its prefill. */
  readonly chunk: number;
  /** The arithmetic said so much too much was free, GiB. */
  readonly missingGiB: number;
}

function readDeath(one: LaunchTry, predict: Predict): Death[] {
  const { cause, facts } = one.verdict;
  const isAtWork = AT_WORK.includes(cause) && (one.wasReady || cause !== 'gpu-out-of-memory');
  if (!isAtWork && !AT_START.includes(cause)) return [];
  const plan = predict(one.flags);
  if (plan === undefined) return [];
  const short = shortageOf(one) ?? 0;
  const expected = plan.prediction.freeAfterGraphsGiB;
  if (!isAtWork) return [{ neededGiB: 0, chunk: 0, missingGiB: Math.max(0, expected) + short }];
  const free = facts.freeAfterGraphsGiB ?? Math.max(0, expected);
  return [{ neededGiB: free + short, chunk: chunkOf(plan), missingGiB: 0 }];
}

function chunkOf({ launch }: Plan): number {
  return launch.prefillChunkTokens;
}

/** `Tried to allocate 1.75 GiB. … of which 843.12 MiB is free`: what was missing for that one allocation, GiB; undefined where it is not said. */
export function shortageOf({ verdict }: LaunchTry): number | undefined {
  const found = verdict.evidence.flatMap(({ text }) => {
    const tried = readSize(/Tried to allocate ([\d.]{1,12}) (GiB|MiB)/.exec(text));
    const free = readSize(/of which ([\d.]{1,12}) (GiB|MiB) is free/.exec(text));
    return tried === undefined || free === undefined ? [] : [Math.max(0, tried - free)];
  });
  return found.length === 0 ? undefined : Math.max(...found);
}

/** No GPU has more. */
const MOST_GIB = 1024;

function readSize(match: RegExpExecArray | null): number | undefined {
  const size = Number(match?.[1]) / (match?.[2] === 'MiB' ? 1024 : 1);
  return size >= 0 && size <= MOST_GIB ? size : undefined;
}
