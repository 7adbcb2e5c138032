/** What one log shows, before it is judged. Pure data. */
import type { LogFacts } from './log-facts.ts';
import type { Rule } from './rule.ts';
import type { Phase, Progress } from './verdict.ts';

/** A line that counts, and when. */
export interface Sighting {
  readonly line: number;
  readonly text: string;
  /** Milliseconds comparable within the log; undefined where no line near it has a time. */
  readonly at: number | undefined;
}

/** A line that says that a part ended. */
export interface End extends Sighting {
  /** false: nothing says it; the process was found gone, and this is the last line of its log. */
  readonly isSaid?: false;
}

export interface Found extends Sighting {
  readonly rule: Rule;
  /** The rule's place in the table. */
  readonly place: number;
  readonly numbers: Readonly<Record<string, number>>;
  /** 3: frames or texts near it say where; 2: the phase does; 1: the sign alone. */
  readonly fit: number;
  readonly phase: Phase | '';
  /** Who wrote it: a rank or a process; '' where the line does not say. */
  readonly who: string;
}

/** One reading of a server at work. */
export interface Work extends Sighting {
  readonly kind: 'decode' | 'prefill';
  readonly running: number;
  readonly queued: number;
  readonly usage: number;
  readonly generated: number;
  readonly prompted: number;
  /** SGLang's health probe or warm-up, not a request of anyone. */
  readonly isProbe: boolean;
}

export interface Answers {
  /** Answers 2xx, 4xx, 5xx to requests that generate. */
  readonly good: number;
  readonly refused: number;
  readonly failed: number;
  readonly last: Sighting | undefined;
}

export interface Account {
  readonly facts: LogFacts;
  readonly lines: number;
  /** Lines of the log in which something was recognised. */
  readonly recognised: number;
  /** Bytes of the log without the lines that probes cause: what a dead server does not add to. */
  readonly ownBytes: number;
  /** The last lines, oldest first. */
  readonly tail: readonly { readonly line: number; readonly text: string }[];
  readonly lastAt: number | undefined;
  readonly phase: Phase | '';
  readonly phaseBegan: Sighting | undefined;
  readonly phaseEnded: boolean;
  readonly progress: Progress | undefined;
  /** Seconds an item of the bar, where the bar says so. */
  readonly secondsEach: number | undefined;
  readonly lastBar: Sighting | undefined;
  /** A kernel's compilation that began in this phase. */
  readonly compiling: Sighting | undefined;
  readonly ready: Sighting | undefined;
  /** The last readings, oldest first. */
  readonly work: readonly Work[];
  readonly answers: Answers;
  /** Retractions among the last readings, and all notices of a full pool. */
  readonly retractions: readonly Sighting[];
  /** Notices that workers do not take messages, since the last sign of progress. */
  readonly notices: readonly Sighting[];
  /** Those of a server at work, whatever came after them. */
  readonly noticesAtWork: number;
  readonly lastProgress: Sighting | undefined;
  readonly graphs: Sighting | undefined;
  readonly isMultiNode: boolean;
  /** The ranks' communicators came up. */
  readonly communicators: Sighting | undefined;
  /** NCCL had begun to set up. */
  readonly nccl: Sighting | undefined;
  /** It was asked to end. */
  readonly shutdown: Sighting | undefined;
  /** Weights had been read. */
  readonly hasLoaded: boolean;
  readonly found: readonly Found[];
  readonly deaths: readonly End[];
  /** Signs of life after the last death or fatal sign. */
  readonly lifeAfter: { readonly count: number; readonly last: Sighting | undefined; readonly isReady: boolean };
  /** A traceback that no rule explained and nothing came after. */
  readonly openTraceback: Sighting | undefined;
  readonly harmless: readonly Sighting[];
  /** Starts of a server in the same log before this one. */
  readonly startsBefore: number;
}

export interface NamedAccount {
  /** '' where only one file was read. */
  readonly file: string;
  readonly account: Account;
}
