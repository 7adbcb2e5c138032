/** What a diagnosis says. Pure data; the words of these lists are the contract of `aerie diagnose --json`. */
import type { LogFacts } from './log-facts.ts';

/** What a log file can show. `absent`, `unresponsive` and `stopped` need a probe. */
export const STATES = ['initializing', 'ready', 'serving', 'degraded', 'hung', 'crashed'] as const;
export type State = (typeof STATES)[number];

/** In the order of a start; engines leave some out. */
export const PHASES = [
  'image-fetch',
  'argument-parsing',
  'model-import',
  'model-resolution',
  'device-init',
  'distributed-init',
  'weight-loading',
  'tokenizer-load',
  'profiling',
  'torch-compile',
  'attention-backend-init',
  'kv-connector-init',
  'kv-pool-allocation',
  'kv-cache-sized',
  'jit-compile',
  'cuda-graph-capture',
  'engine-initialized',
  'http-bind',
  'warmup',
  'serving',
] as const;
export type Phase = (typeof PHASES)[number];

/** high: the engine names the cause. medium: inferred from several signs. low: little to go by. */
export type Confidence = 'high' | 'medium' | 'low';

export interface Evidence {
  /** Counted by line feeds, from 1, as an editor counts. */
  readonly line: number;
  readonly text: string;
  /** Where several files were read. */
  readonly file?: string;
}

/** What to do: a flag with its new value where one can be computed, and always a sentence. */
export interface Remedy {
  readonly text: string;
  /** As typed: `--mem-fraction-static`, `NCCL_P2P_DISABLE` (an environment variable), or '' where no flag helps. */
  readonly flag: string;
  readonly value: string;
}

export interface Progress {
  readonly done: number;
  readonly of: number;
}

export interface Hypothesis {
  readonly name: 'slow' | 'hung' | 'silently dead' | 'ready but mute';
  readonly for: readonly string[];
  readonly against: readonly string[];
}

export interface Verdict {
  readonly state: State;
  /** '' where the log does not show it, and for a server that is ready and idle. */
  readonly phase: Phase | '';
  /** How far the phase is, where the engine counts. */
  readonly progress?: Progress;
  /** A code of docs/diagnosis; `none` = nothing is wrong; `unknown` = something is, and no rule explains it. */
  readonly cause: string;
  readonly title: string;
  readonly confidence: Confidence;
  readonly evidence: readonly Evidence[];
  readonly remedy: Remedy;
  /** Whether the same flags can work on a second try; null: it depends on what the log does not show. */
  readonly restartSameFlagsHelps: boolean | null;
  /** What was looked at, where the cause is not known, and what limits the answer. */
  readonly notes: readonly string[];
  readonly hypotheses: readonly Hypothesis[];
  readonly facts: LogFacts;
}
