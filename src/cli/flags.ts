/** The flags of each command, as the command gets them. */
import type { PlanInput } from '../app/plan.ts';

export interface CommonFlags {
  readonly json: boolean;
}

export interface RunFlags extends CommonFlags {
  readonly retryFailed: boolean;
  readonly redo?: string;
  readonly maxLength?: number;
  readonly benchmarks?: string;
  readonly amend: boolean;
  readonly strict: boolean;
  readonly killHolder?: number;
  readonly detach: boolean;
}

export interface StatusFlags extends CommonFlags {
  readonly follow: boolean;
}

export interface StopFlags extends CommonFlags {
  readonly now: boolean;
}

export interface RehearseFlags extends CommonFlags {
  readonly prompts?: number;
  readonly rate?: number;
  readonly lengths?: string;
  readonly scenario?: string;
}

export interface ServerFlags extends CommonFlags {
  readonly server?: string;
}

export interface ServerStartFlags extends ServerFlags {
  readonly killHolder?: number;
}

export interface ServerLogsFlags {
  readonly server?: string;
  readonly launch?: number;
  readonly lines?: number;
  readonly follow: boolean;
}

export interface ExportFlags extends CommonFlags {
  readonly for: 'specforge' | 'speculators' | 'modelopt' | 'automodel' | 'eagle' | 'parquet';
  readonly to?: string;
  readonly partition?: readonly string[];
  readonly without?: readonly string[];
  readonly maxLength?: number;
  readonly benchmarks?: string;
  readonly heldOut?: number;
  readonly extendMask: boolean;
  readonly counts: boolean;
  readonly draftVocab?: number;
  readonly targetVocab?: number;
}

export interface CheckFlags extends CommonFlags {
  readonly maxLength?: number;
  readonly benchmarks?: string;
}

export interface DiagnoseFlags extends CommonFlags {
  readonly now?: string;
}

export interface ProbeFlags extends CommonFlags {
  readonly server?: string;
  readonly url?: string;
  readonly log?: string;
  readonly ssh?: string;
  readonly keyEnv?: string;
}

export interface PolicyAddFlags extends CommonFlags {
  readonly forbid?: readonly string[];
  readonly require?: readonly string[];
  readonly min?: readonly string[];
  readonly max?: readonly string[];
  readonly because: string;
  readonly by: string;
}

export interface InitFlags extends CommonFlags {
  readonly from?: string;
  readonly run?: string;
  readonly engine?: 'vllm' | 'sglang' | 'openai';
  readonly attach?: string;
  readonly machine?: string;
  readonly model?: string;
  readonly force: boolean;
}

/** Those of the operation; two are called otherwise on a command line, and the rest of it is no flag. */
export interface PlanFlags extends CommonFlags, Omit<PlanInput, 'target' | 'gpuMemoryMiB' | 'words' | 'sweeps'> {
  readonly gpuMemory?: number;
  readonly sweep?: readonly string[];
}
