/**
 * What follows when a launch has ended or hangs: the same flags, a change that the arithmetic gives, waiting for memory, or the end. Pure.
 *
 * Promises: bounded (`bounds.ts`); the same flags never again once they failed in a way that recurs; no change without numbers or the
 * verdict's own words; nothing that changes the numerics unless a rule of the run is written for it; nothing that the arithmetic says dies.
 * Asked in this order: is the count full, is it somebody else's memory, may the same flags pass, which change does the cause ask for.
 */
import { countedTries, MOST_TRIES, mayRepeat, mayWait, pauseBefore } from './bounds.ts';
import { flagValue } from './changes.ts';
import { findChange } from './find-change.ts';
import { describeChanges } from './judge-candidate.ts';
import { type Predict, predictor, summarise } from './predict-candidate.ts';
import type { LaunchTry, RecoveryQuestion, RecoveryStep } from './recovery.ts';
import type { Outcome } from './search-memory.ts';
import { describeForeignMemory } from './start-memory.ts';

/** Somebody else's memory, whatever the flags are. */
const HELD: readonly string[] = ['unbalanced-gpu-memory', 'init-oom-reported-by-nccl'];
/** Causes in which less free memory than before explains the end. */
const MAYBE_HELD: readonly string[] = [
  'weights-exceed-static-fraction',
  'weights-exceed-gpu-memory',
  'kv-pool-allocation-oom',
  'cuda-graph-capture-oom',
  'profiling-oom',
  'max-model-len-exceeds-kv-capacity',
];
/** The same flags hang again here, though the log cannot prove it: the variable goes first. */
const REMEDY_FIRST: readonly string[] = ['nccl-init-hang'];
/** Where vLLM finds a little less free than it asks for, a little less will do; more is somebody else's. */
const LITTLE = 0.05;

/** States in which a log shows a server that lives. */
const LIVING: readonly string[] = ['initializing', 'ready', 'serving', 'degraded'];

export function decideRecovery(asked: RecoveryQuestion): RecoveryStep {
  const question = { ...asked, tries: asked.tries.map(readEnding) };
  const last = question.tries.at(-1);
  if (last === undefined) return giveUp('no launch has ended', 'Start the server: aerie server start', []);
  const counted = countedTries(question.tries);
  if (counted.length >= MOST_TRIES)
    return giveUp(
      `${counted.length} launches have ended, and ${MOST_TRIES} is the most that is tried: ${last.verdict.title}`,
      last.verdict.remedy.text,
      [],
    );
  const predict = predictor(question);
  const foreign = findForeign(question, last);
  if (foreign !== '') return waitForMemory(question, foreign);
  const isRemedyFirst = REMEDY_FIRST.includes(last.verdict.cause);
  if (!isRemedyFirst && mayRepeat(question)) return sameFlags(question, last, predict);
  const { found, passedOver } = findChange(question, predict);
  if (found !== undefined)
    return {
      kind: 'relaunch',
      changes: found.changes,
      because: `${last.verdict.title}: ${describeChanges(found.changes)}; ${found.because}`,
      predicted: found.predicted,
      pauseMs: 0, // the launch itself waits until the memory is back
      passedOver,
    };
  if (isRemedyFirst && mayRepeat(question)) return sameFlags(question, last, predict);
  return giveUp(hopeless(last, passedOver), last.verdict.remedy.text, passedOver);
}

/** It ended, and its log shows nothing of it: what the log says of its life explains no end, and no remedy of it is one. */
function readEnding(one: LaunchTry): LaunchTry {
  const { verdict } = one;
  if (!LIVING.includes(verdict.state)) return one;
  const title = `the server ended without a word; the last that its log shows: ${verdict.state}${verdict.cause === 'none' ? '' : `, ${verdict.title}`}`;
  const text = 'Look at the kernel’s log (dmesg -T | tail, journalctl -k) and at who may have stopped it.';
  const remedy = { text, flag: '', value: '' };
  return { ...one, verdict: { ...verdict, cause: 'unknown', title, remedy, restartSameFlagsHelps: null } };
}

function giveUp(because: string, remedy: string, passedOver: readonly string[]): RecoveryStep {
  return { kind: 'give-up', because, remedy, passedOver };
}

function hopeless({ verdict }: LaunchTry, passedOver: Outcome['passedOver']): string {
  const again =
    verdict.restartSameFlagsHelps === false ? 'the same flags end in the same way' : 'the same flags have been tried again';
  const changes =
    passedOver.length === 0 ? 'no change of a flag is known that would help' : 'no change that would help may be made';
  return `${verdict.title}; ${again}, and ${changes}`;
}

function sameFlags(question: RecoveryQuestion, { flags, verdict }: LaunchTry, predict: Predict): RecoveryStep {
  const plan = predict(flags);
  const passes = verdict.restartSameFlagsHelps === true ? 'this passes by itself' : 'this may pass by itself';
  return {
    kind: 'relaunch',
    changes: [],
    because: `${verdict.title}; ${passes}, so the same flags once more`,
    predicted: plan === undefined ? undefined : summarise(plan),
    pauseMs: pauseBefore(question),
    passedOver: [],
  };
}

/** '' where nobody else's memory is to blame. */
function findForeign(question: RecoveryQuestion, { verdict, flags }: LaunchTry): string {
  const { cause, title, remedy } = verdict;
  if (HELD.includes(cause)) return title;
  if (cause === 'gpu-memory-held-by-other-process') {
    const asked = Number(
      flagValue('vllm', flags, 'gpu-memory-utilization') ?? verdict.facts.arguments['gpu_memory_utilization'] ?? 0.9,
    );
    return Number(remedy.value) >= asked - LITTLE ? '' : title;
  }
  return MAYBE_HELD.includes(cause) ? describeForeignMemory(question) : '';
}

function waitForMemory(question: RecoveryQuestion, because: string): RecoveryStep {
  const remedy =
    'See who holds it: nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv; from inside a container the holder may be invisible, then ask the host. Stop it, then start the server again with the same flags.';
  if (!mayWait(question)) return giveUp(`${because}; it was waited for, and is still held`, remedy, []);
  return { kind: 'wait-for-memory', because: `${because}; flags do not help`, remedy, pauseMs: pauseBefore(question) };
}
