/** The flags of each command, as the command gets them. */
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

export interface InitFlags extends CommonFlags {
  readonly from?: string;
  readonly run?: string;
  readonly engine?: 'vllm' | 'sglang' | 'openai';
  readonly attach?: string;
  readonly model?: string;
  readonly force: boolean;
}

export interface PlanFlags extends CommonFlags {
  readonly engine?: 'sglang' | 'vllm';
  readonly engineVersion?: string;
  readonly model?: string;
  readonly gpu?: string;
  readonly gpuMemory?: number;
  readonly facts?: string;
  readonly log?: string;
  readonly calibrate?: string;
  readonly sweep?: readonly string[];
  readonly workload?: string;
  readonly lengths?: string;
  readonly promptLengths?: string;
  readonly requests?: number;
  readonly maxTokens?: number;
  readonly inFlight?: number;
  readonly pricePerHour?: number;
  readonly plot?: string;
}
