/**
 * What is asked of a plan: from a run file, from the command line, or from both; what stands on the command line wins.
 * Promises: everything that is taken for granted is said in `assumed`.
 */
import { AerieError } from '../../base/errors.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Gpu } from '../../capacity/gpu.ts';
import { describeGpu, findGpu } from '../../capacity/gpus.ts';
import { SGLANG_LINE, VLLM_LINE, wordsOf } from '../../engine/launching.ts';
import type { PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';

export interface PlanInput {
  /** A run file or run folder; left out: all is on the command line. */
  readonly target?: string;
  readonly engine?: PlannedEngine;
  readonly engineVersion?: string;
  /** A hub name, a folder with a config.json, or that file. */
  readonly model?: string;
  readonly gpu?: string;
  /** MiB as `nvidia-smi` prints it, for a card that is in no table. */
  readonly gpuMemoryMiB?: number;
  /** Engine flags as words; they come after those of the run file, and the last of several wins. */
  readonly words: readonly string[];
  /** JSON: any subset of the facts of a log. */
  readonly facts?: string;
  /** A log of a launch of this model on these GPUs. */
  readonly log?: string;
  /** A log with a server at work, or JSON points: step times come from it. */
  readonly calibrate?: string;
  readonly sweeps: readonly string[];
  /** A run whose finished answers say how long answers are. */
  readonly workload?: string;
  /** `lognormal:mean=4000,sigma=0.8`. */
  readonly lengths?: string;
  readonly promptLengths?: string;
  readonly requests?: number;
  readonly maxTokens?: number;
  readonly inFlight?: number;
  readonly pricePerHour?: number;
  /** SVG to write. */
  readonly plot?: string;
}

export interface PlanQuestion {
  readonly engine: PlannedEngine;
  /** '' = not said. */
  readonly version: string;
  readonly model: string;
  readonly gpu: Gpu;
  readonly words: readonly string[];
  readonly policy: readonly PolicyRule[];
  /** 0 = not said. */
  readonly pricePerHour: number;
  readonly assumed: readonly string[];
}

/** What is taken where nobody names a GPU: the card that most public reports of these engines are from. */
const ASSUMED_GPU = 'H100';

export function askPlan(input: PlanInput, run: RunSpec | undefined): PlanQuestion {
  const server = run === undefined ? undefined : findLaunch(run, input.engine);
  const assumed: string[] = [];
  const engine = input.engine ?? (server?.engine as PlannedEngine | undefined);
  if (engine === undefined) throw missing('--engine', 'sglang or vllm');
  const written = server === undefined ? [] : wordsOf(server.flags, engine === 'vllm' ? VLLM_LINE : SGLANG_LINE);
  const words = [...written, ...input.words];
  const model = input.model ?? modelIn(words) ?? run?.model;
  if (model === undefined) throw missing('--model', 'a name on the hub, or a folder with its config.json');
  const gpuName = input.gpu ?? (server?.gpu || undefined);
  if (gpuName === undefined && input.gpuMemoryMiB === undefined)
    assumed.push(`the GPU: ${ASSUMED_GPU} (say which with --gpu, or gpu: in the run file)`);
  const gpu =
    input.gpuMemoryMiB === undefined ? findGpu(gpuName ?? ASSUMED_GPU) : describeGpu(gpuName ?? 'GPU', input.gpuMemoryMiB);
  const pricePerHour = input.pricePerHour ?? run?.pricePerHour ?? 0;
  const version = input.engineVersion ?? server?.engineVersion ?? '';
  return { engine, version, model, gpu, words, policy: run?.policy ?? [], pricePerHour, assumed };
}

/** The first launch of the run file; servers that are already there have the flags they were started with. */
function findLaunch(run: RunSpec, engine: PlannedEngine | undefined): ServerSpec | undefined {
  const launches = run.servers.filter(({ attach, engine: own }) => attach === undefined && (own === 'sglang' || own === 'vllm'));
  const found = launches.find((server) => engine === undefined || server.engine === engine);
  if (found !== undefined || engine !== undefined) return found;
  throw new AerieError('usage.flag', `${run.file} has no launch of SGLang or vLLM to plan.`, {
    because: `Its servers are ${run.servers.map(({ name, attach }) => `${name}${attach === undefined ? '' : ' (attached)'}`).join(', ')}.`,
    remedy: 'Write engine: sglang or vllm with flags: there, or give --engine, --model, --gpu and the flags after --.',
  });
}

function modelIn(words: readonly string[]): string | undefined {
  for (const [at, word] of words.entries()) {
    const [, equal] = /^--model(?:-path)?=(.+)$/.exec(word) ?? [];
    if (equal !== undefined) return equal;
    if (/^--model(-path)?$/.test(word)) return words[at + 1];
  }
  return undefined;
}

function missing(flag: string, what: string): AerieError {
  return new AerieError('usage.flag', `A plan needs ${flag}: ${what}.`, {
    remedy:
      'aerie plan run.yaml, or for example:\n' +
      'aerie plan --engine sglang --model moonshotai/Kimi-K2.5 --gpu "RTX PRO 6000" -- --tp 8 --mem-fraction-static 0.88',
  });
}
