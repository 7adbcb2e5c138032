/** The remedy that a verdict itself names, as a change: a flag of the engine with its value, or an environment variable. Pure. */
import type { FlagValue } from '../../spec/run.ts';
import { changeFlag, flagValue, rowOf } from './changes.ts';
import { FRACTION, judgeCandidate } from './judge-candidate.ts';
import { type Predict, summarise } from './predict-candidate.ts';
import type { LaunchChange, RecoveryQuestion } from './recovery.ts';
import type { Outcome } from './search-memory.ts';

/**
 * Variables that recovery may set where they are not set, each with why it is harmless. Others (interfaces, tokens, folders in /tmp that
 * somebody else may have made) are a person's to choose.
 */
const MAY_BE_SET: Readonly<Record<string, string>> = {
  NCCL_P2P_DISABLE: 'ranks speak through host memory: slower, the same sums',
  VLLM_WORKER_MULTIPROCESSING_METHOD: 'how processes are started',
  HF_HUB_OFFLINE: 'files that are in the cache are taken from there',
  CUDA_HOME: 'where compilers are looked for',
};

export function takeVerdictRemedy(question: RecoveryQuestion, predict: Predict): Outcome {
  const last = question.tries.at(-1);
  if (last === undefined) return { found: undefined, passedOver: [] };
  const { remedy, title } = last.verdict;
  const drafted = draftChange(question);
  if (typeof drafted === 'string') return { found: undefined, passedOver: drafted === '' ? [] : [drafted] };
  const { plan, refusal } = judgeCandidate(question, [drafted], predict);
  const dies = plan !== undefined && isAboutMemory(question, drafted) && plan.prediction.verdict !== 'fits';
  const lacks = refusal || (dies ? plan.prediction.because : '');
  if (lacks !== '') return { found: undefined, passedOver: [`${drafted.name} ${String(drafted.to)}: ${lacks}`] };
  const predicted = plan === undefined ? undefined : summarise(plan);
  return { found: { changes: [drafted], because: `${title}: ${remedy.text}`, predicted }, passedOver: [] };
}

/** A sentence where there is a remedy that cannot be taken, '' where there is none. */
function draftChange(question: RecoveryQuestion): LaunchChange | string {
  const last = question.tries.at(-1);
  if (last === undefined) return '';
  const { flag, value, text } = last.verdict.remedy;
  if (flag === '') return '';
  if (!flag.startsWith('--')) return draftVariable(flag, value, last.env, text);
  const row = rowOf(question.engine, flag);
  const written = flagValue(question.engine, last.flags, flag);
  // A text that no table knows may say more than the remedy does.
  if (row === undefined && written !== undefined) return `${flag} is given already, and stays as it is. ${text}`;
  const to = readValue(row?.kind ?? 'text', value);
  if (to === undefined) return `${flag}: which value is not known. ${text}`;
  return changeFlag({ engine: question.engine, flags: last.flags }, flag.replace(/^-+/, ''), to, text);
}

function draftVariable(name: string, value: string, env: Readonly<Record<string, string>>, text: string): LaunchChange | string {
  if (value === '') return `${name}: which value is not known. ${text}`;
  if (env[name] !== undefined) return `${name} is set already, and stays as it is. ${text}`;
  const harmless = Object.hasOwn(MAY_BE_SET, name) ? MAY_BE_SET[name] : undefined;
  if (harmless === undefined) return `${name}=${value}: a person decides. ${text}`;
  return { what: 'env', name, from: undefined, to: value, because: `${text} (${harmless})` };
}

/** As the table has the flag; values that no engine takes are none. */
function readValue(kind: string, value: string): FlagValue | undefined {
  if (kind === 'switch') return value === '' ? true : undefined;
  if (value === '') return undefined;
  if (kind !== 'count' && kind !== 'size' && kind !== 'fraction') return value;
  const number = Number(value);
  if (!Number.isFinite(number) || number <= 0) return undefined;
  return kind === 'fraction' || Number.isSafeInteger(number) ? number : undefined;
}

const MEMORY_FLAGS = ['max-running-requests', 'max-num-seqs', 'chunked-prefill-size', 'max-num-batched-tokens', 'max-model-len'];

function isAboutMemory({ engine }: RecoveryQuestion, { what, name }: LaunchChange): boolean {
  return what === 'flag' && [FRACTION[engine], ...MEMORY_FLAGS].includes(rowOf(engine, name)?.name ?? '');
}
