/** The run as the rest of Aerie sees it: every default resolved, every path absolute, nothing left to parse. */
import type { Sampling } from '../base/sampling.ts';

/** Beyond this, connections rather than the engine set the pace. */
export const MOST_IN_FLIGHT = 4096;

export type EngineKind = 'embedded' | 'vllm' | 'sglang' | 'openai';

/** What stands behind a flag; `true` is a flag without a value, a list is one that takes several. */
export type FlagValue = string | number | boolean | readonly (string | number)[];

/** A value, or the name of the environment variable that holds a secret: the secret itself never enters a spec. */
export type EnvValue = { readonly value: string } | { readonly secret: string };

/** A machine behind ssh. Both are what the system's `ssh` is given as its destination: `[USER@]NAME` or `ssh://[USER@]NAME[:PORT]`. */
export interface MachineSpec {
  readonly ssh: string;
  /** The machine that this one is a container of: who holds GPU memory is asked there. '' = not said. */
  readonly outer: string;
}

/** A server that is already there: `written` is what the run file says, for people and records. */
export type Attachment =
  | { readonly kind: 'url'; readonly written: string; readonly url: string }
  /** A port on the loopback of the server's machine. */
  | { readonly kind: 'port'; readonly written: string; readonly port: number }
  /** A container, by name or id, of the docker on the server's machine. */
  | { readonly kind: 'docker'; readonly written: string; readonly container: string };

/** A server Aerie launches, or one that is already there (`attach`), which Aerie never stops. */
export interface ServerSpec {
  readonly name: string;
  readonly engine: EngineKind;
  /** Where it runs; undefined: this machine. */
  readonly machine?: MachineSpec;
  /** undefined where Aerie launches the server. */
  readonly attach?: Attachment;
  /** Name of the environment variable that holds the key; the value never enters a spec. */
  readonly apiKeyName?: string;
  /** Engine flags, spelled as the engine spells them, without the leading dashes. */
  readonly flags: Readonly<Record<string, FlagValue>>;
  /** GPU and engine version of its machine, for plans; '' = not said. */
  readonly gpu: string;
  readonly engineVersion: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Shell lines before the launch. */
  readonly setup: readonly string[];
  readonly env: Readonly<Record<string, EnvValue>>;
  /** What starts the engine, as the shell reads it, its own flags left out; '' = the engine's usual one. */
  readonly command: string;
  /** Absolute, on its machine; '' = the folder of the run file, behind ssh the home folder. */
  readonly workdir: string;
  /** Absolute path of its log, on its machine; '' = in the run folder, behind ssh below ~/.aerie. */
  readonly log: string;
}

export type BelowBits = 'below-16-bit' | 'below-8-bit';

/** Figures of a launch that a rule can bound. */
export interface PolicyLimits {
  readonly kvCacheBits?: number;
  readonly weightBits?: number;
  readonly contextTokens?: number;
  readonly poolTokens?: number;
  readonly runningRequests?: number;
  readonly memoryFraction?: number;
  /** Left on each GPU after graph capture. */
  readonly freeGiB?: number;
}

/** What nobody may do, what must be, and why. Exactly one of `forbid`, `require`, `min` and `max` in the file. */
export interface PolicyRule {
  readonly forbid?: { readonly kvCache?: BelowBits; readonly weights?: BelowBits | 'requantised' };
  readonly require?: { readonly kvCache?: string; readonly weights?: 'as-published' };
  readonly min?: PolicyLimits;
  readonly max?: PolicyLimits;
  readonly because: string;
  readonly by: string;
}

/** How a partition's prompts are asked. */
export interface AskSettings {
  readonly sampling: Sampling;
  /** Shares of the prompts with a temperature of their own; together at most 1, the rest has `sampling.temperature`. */
  readonly temperatureMixture: readonly { readonly temperature: number; readonly share: number }[];
  /** `chat_template_kwargs` of every request; `thinking: true|false` in the file ends up here as `enable_thinking`. */
  readonly templateKwargs: Readonly<Record<string, unknown>>;
  readonly extraBody: Readonly<Record<string, unknown>>;
}

export const COLUMN_NAMES = ['messages', 'turns', 'prompt', 'instruction', 'input', 'system', 'tools'] as const;
export type ColumnName = (typeof COLUMN_NAMES)[number];
export type Columns = Readonly<Partial<Record<ColumnName, string>>>;

export interface PartitionSpec {
  readonly name: string;
  /** Where its rows are, in order: absolute paths, patterns, `hf://datasets/…`. */
  readonly from: readonly string[];
  /** Which column of a row holds what; dots lead into a column. Empty: the usual names. */
  readonly columns: Columns;
  /** Generated tokens; 0 = no budget. */
  readonly budget: number;
  /** Most prompts; 0 = all. */
  readonly limit: number;
  /** Which user turns are answered. */
  readonly turns: 'all' | 'last';
  /** What becomes of an answer that was cut at the cap, and of its conversation. */
  readonly truncated: 'keep' | 'drop' | 'continue';
  /** Most further requests for one answer; 0 unless `truncated` is continue. */
  readonly continuations: number;
  /** The run's, with the partition's own laid over it. */
  readonly ask: AskSettings;
}

/** Its own `AskSettings` are what partitions begin from; each partition has the ones that count. */
export interface RunSpec extends AskSettings {
  readonly name: string;
  readonly model: string;
  readonly servers: readonly ServerSpec[];
  readonly policy: readonly PolicyRule[];
  readonly partitions: readonly PartitionSpec[];
  /** Deadline of one attempt; 0 = computed from what was asked. */
  readonly attemptTimeoutMs: number;
  /** How long a server may be away before the worker gives up. */
  readonly patienceMs: number;
  /** Requests in flight over all servers; where `isInFlightAuto`, before anything is known of them. */
  readonly inFlight: number;
  /** The number follows what the servers' KV pools hold. */
  readonly isInFlightAuto: boolean;
  /** Whether the file says it, or it is the default. */
  readonly isInFlightGiven: boolean;
  /** What the machines cost in an hour; 0 = not said. */
  readonly pricePerHour: number;
  /** Absolute path of the run file, and of the run folder `runs/NAME` beside it. */
  readonly file: string;
  readonly folder: string;
  /** Where what is known of launched servers lies, and their logs: the run's own folder, also while a preview works in another. */
  readonly serverFolder: string;
  /** The text as given. */
  readonly text: string;
}
