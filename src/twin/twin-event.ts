/** What the twin tells as it happens, at the time of `at` (seconds). */

/** A step with prompt tokens, as it begins: what it takes of the pool is taken, and nothing is computed yet. */
export interface PrefillBatch {
  readonly at: number;
  readonly newSequences: number;
  readonly newTokens: number;
  readonly cachedTokens: number;
  /** Requests that were running before it. */
  readonly running: number;
  readonly queued: number;
  /** Tokens in use without its new ones. */
  readonly usedTokens: number;
}

export type TwinEnding = 'finished' | 'aborted' | 'refused' | 'out-of-memory';

export type TwinEvent =
  /** A step with new prompt tokens has ended. */
  | {
      readonly kind: 'prefill';
      readonly at: number;
      readonly newSequences: number;
      readonly newTokens: number;
      readonly cachedTokens: number;
      readonly seconds: number;
    }
  /** So many decode steps in a row have ended. */
  | { readonly kind: 'decode'; readonly at: number; readonly steps: number; readonly seconds: number }
  | { readonly kind: 'first-token'; readonly at: number; readonly id: string }
  | {
      readonly kind: 'retracted';
      readonly at: number;
      readonly ids: readonly string[];
      readonly ratioBefore: number;
      readonly ratioAfter: number;
      /** Free or evictable now, and not before. */
      readonly gainedTokens: number;
    }
  | {
      readonly kind: 'ended';
      readonly at: number;
      readonly id: string;
      readonly ending: TwinEnding;
      readonly produced: number;
      readonly cachedTokens: number;
      readonly arrivedAt: number;
    };
