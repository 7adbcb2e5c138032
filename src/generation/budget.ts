/**
 * Budget: when a partition stops admitting. Pure.
 *
 * A partition stops admitting when spent + expected-in-flight reaches its budget; what is under way is kept. `spent` is
 * output ids of live records and of finished turns of unfinished conversations. What an unanswered turn will cost is
 * its cap until 30 answers are known (before that a mean says little: with lognormal lengths of σ ≈ 1 the standard
 * error of a mean of 30 is about a quarter of it), then the running mean.
 */
const ANSWERS_BEFORE_MEAN = 30;

export interface BudgetState {
  /** Generated tokens allowed; 0 = no budget. */
  readonly budget: number;
  readonly spentTokens: number;
  /** Turns answered, and the tokens they had: the running mean's two numbers. */
  readonly answers: number;
  readonly answerTokens: number;
  /** Turns still to be answered by the conversations under way. */
  readonly turnsUnderWay: number;
  /** Most tokens one answer may have. */
  readonly maxTokens: number;
}

/** Tokens that one more unanswered turn is expected to cost. */
export function expectedTurnTokens(state: BudgetState): number {
  if (state.answers < ANSWERS_BEFORE_MEAN) return state.maxTokens;
  return state.answerTokens / state.answers;
}

/** Tokens that the conversations under way are still expected to cost. */
export function expectedInFlight(state: BudgetState): number {
  return state.turnsUnderWay * expectedTurnTokens(state);
}

export type Admission = 'admit' | 'wait' | 'reached';

/**
 * `wait`: what is under way may turn out shorter than expected, ask again after the next answer.
 * `reached`: nothing is under way and there is no room: the partition is finished by its budget.
 */
export function decideAdmission(state: BudgetState): Admission {
  if (state.budget === 0) return 'admit';
  if (state.spentTokens + expectedInFlight(state) < state.budget) return 'admit';
  return state.turnsUnderWay > 0 ? 'wait' : 'reached';
}
