/** What a rule of diagnosis is. Rules are data: `rules/`, one file per family; `judge.ts` decides between them. Pure. */
import type { LogFacts } from './log-facts.ts';
import type { Sign } from './sign.ts';
import type { Phase, Remedy, State } from './verdict.ts';

/** What a remedy may be computed from. */
export interface RemedyFacts {
  readonly facts: LogFacts;
  /** The `{name}` numbers of the sign that was found. */
  readonly numbers: Readonly<Record<string, number>>;
}

/**
 * How near to the beginning of the chain a rule's sign stands.
 * root: it says what went wrong. symptom: it says how the fault showed (a time-out, a lost peer) and loses to a root.
 * wrapper: it only says that something above it failed, and loses to everything.
 */
export type Weight = 'root' | 'symptom' | 'wrapper';

export interface Rule {
  readonly code: string;
  /** A short clause, without a full stop. */
  readonly title: string;
  /** The state that the sign leads to where it is current. */
  readonly state: State;
  readonly weight: Weight;
  /** Any one of them. Rules that judge by figures or by silence have none. */
  readonly signs: readonly (string | Sign)[];
  /** The sign alone is no crash: it counts only where something else shows that the server ended. */
  readonly onlyIfDead?: boolean;
  /** The sign stands in warnings too: it ends a server only as an exception, or where something else shows that it ended. */
  readonly isAlsoWarned?: boolean;
  /** The sign counts only here: near one of these texts (in the lines above it), or in one of these phases. */
  readonly where?: { readonly near?: readonly string[]; readonly phases?: readonly Phase[] };
  /** The sign does not count in a line that holds one of these. */
  readonly unless?: readonly string[];
  /** The sign does not count a few lines below one of these texts. */
  readonly unlessNear?: readonly string[];
  /** The phase that the sign itself proves, whatever stood before it. */
  readonly phase?: Phase;
  readonly restartSameFlagsHelps: boolean | null;
  /** The same, where it ended a start: what a start did once it does again. */
  readonly restartAfterStartFailed?: boolean | null;
  readonly remedy: (from: RemedyFacts) => Remedy;
  /** What it means, in one or two sentences. */
  readonly meaning: string;
  /** What it is often taken for. */
  readonly mistakenFor: string;
  /** Lines as an engine prints them. */
  readonly example: string;
}

/** A remedy that is a sentence only. */
export function advise(text: string): () => Remedy {
  return () => ({ text, flag: '', value: '' });
}

/** A remedy that is a flag with a value that needs no figures. */
export function setFlag(flag: string, value: string, text: string): () => Remedy {
  return () => ({ flag, value, text });
}

/** The flag of the engine that wrote the log. */
export function byEngine(facts: LogFacts, sglang: string, vllm: string): string {
  return facts.engine === 'vllm' ? vllm : sglang;
}

/** The memory fraction that the log shows, of either engine. */
export function fractionOf({ arguments: given }: LogFacts): number | undefined {
  const value = Number(given['mem_fraction_static'] ?? given['gpu_memory_utilization']);
  return value > 0 && value <= 1 ? value : undefined;
}
