/** How tokens are chosen: resolved values, the ones written into every record. */
export interface Sampling {
  /** 0 = greedy. */
  readonly temperature: number;
  /** 1 = off. */
  readonly topP: number;
  /** 0 = off. */
  readonly topK: number;
  /** Most tokens one answer may have. */
  readonly maxTokens: number;
  /** The run's seed; each turn's own seed is derived from it, the prompt id and the turn. */
  readonly seed: number;
  /** Texts that end an answer; the ids hold them, the text does not. */
  readonly stop: readonly string[];
}
