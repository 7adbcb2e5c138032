/** What the twin asks of an engine's scheduling rules at the start of each step. */
import type { Sequence } from './sequence.ts';

/** A part of a prompt that is computed in one step. */
export interface Piece {
  readonly sequence: Sequence;
  readonly newTokens: number;
  /** Tokens of it that are there already. */
  readonly before: number;
  readonly loadedTokens: number;
  /** The last part: the step ends with a token. */
  readonly complete: boolean;
  /** The first part since it was admitted. */
  readonly first: boolean;
}

export interface Plan {
  readonly pieces: readonly Piece[];
  /** Sent back to the queue, with what they have generated. */
  readonly retracted: readonly Sequence[];
  /** Cannot grow although nobody else is left to give way: ended with an error, as SGLang does from 0.5.10 on. */
  readonly failed: readonly Sequence[];
}

export interface Scheduler {
  /**
   * Decides one step. No pieces = a decode step, and then the same is decided at each following step until a request
   * arrives, ends or must give way: that is what lets the twin jump.
   */
  plan(): Plan;
  /** Whether running requests decode in a step that has pieces. */
  readonly mixes: boolean;
  /** The request whose prompt is half computed. */
  readonly partial: Sequence | undefined;
  /** SGLang's new-token ratio; 0 where there is none. */
  readonly ratio: number;
  /** Takes the half computed request out, to be released by the caller. */
  dropPartial(): void;
  /** Tokens of pages that were taken for the half computed request. */
  takenByPartial(): number;
  memberLeft(): void;
  stepped(steps: number): void;
  becameIdle(): void;
}
