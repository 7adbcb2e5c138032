/** The budget against a model of ten lines: random arrivals and answers, and no way past the rule. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type BudgetState, decideAdmission, expectedInFlight, expectedTurnTokens } from './budget.ts';

const STATE: BudgetState = { budget: 1000, spentTokens: 0, answers: 0, answerTokens: 0, turnsUnderWay: 0, maxTokens: 100 };

test('an unanswered turn is expected to cost its cap until thirty answers are known, then the running mean', () => {
  expect(expectedTurnTokens({ ...STATE, answers: 29, answerTokens: 290 })).toBe(100);
  expect(expectedTurnTokens({ ...STATE, answers: 30, answerTokens: 300 })).toBe(10);
  expect(expectedInFlight({ ...STATE, answers: 30, answerTokens: 300, turnsUnderWay: 7 })).toBe(70);
});

test('admission ends at the budget, waits while something is under way, and is over when nothing is', () => {
  expect(decideAdmission({ ...STATE, turnsUnderWay: 9 })).toBe('admit');
  expect(decideAdmission({ ...STATE, turnsUnderWay: 10 })).toBe('wait');
  expect(decideAdmission({ ...STATE, spentTokens: 999, turnsUnderWay: 0 })).toBe('admit');
  expect(decideAdmission({ ...STATE, spentTokens: 1000 })).toBe('reached');
  expect(decideAdmission({ ...STATE, budget: 0, spentTokens: 1e12, turnsUnderWay: 1e6 })).toBe('admit');
});

test('whatever arrives and is answered: never admitted past the rule, overshoot at most what was in flight, never stuck', () => {
  const step = fc.record({
    arrives: fc.boolean(),
    tokens: fc.integer({ min: 1, max: 100 }),
    turns: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), fc.array(step, { maxLength: 300 }), (budget, steps) => {
      const state = { ...STATE, budget };
      let worst = 0;
      for (const { arrives, tokens, turns } of steps) {
        const admission = decideAdmission(state);
        const isFull = state.spentTokens + expectedInFlight(state) >= budget;
        expect(admission).toBe(isFull ? (state.turnsUnderWay > 0 ? 'wait' : 'reached') : 'admit');
        if (arrives && admission === 'admit') {
          state.turnsUnderWay += turns;
          worst = Math.max(worst, state.spentTokens + state.turnsUnderWay * state.maxTokens);
        } else if (state.turnsUnderWay > 0) {
          Object.assign(state, { turnsUnderWay: state.turnsUnderWay - 1, spentTokens: state.spentTokens + tokens });
          Object.assign(state, { answers: state.answers + 1, answerTokens: state.answerTokens + tokens });
        }
      }
      // All that is under way is answered at its cap: the budget and what was in flight at an admission bound it.
      const end = state.spentTokens + state.turnsUnderWay * state.maxTokens;
      expect(end).toBeLessThanOrEqual(Math.max(worst, budget));
      // Nothing under way and room: it admits. Nothing under way and no room: it says so, and does not wait.
      expect(decideAdmission({ ...state, turnsUnderWay: 0 })).not.toBe('wait');
    }),
  );
});
