/** Whose fault is it? A table of cases, and what holds for every sequence of them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decideAfterTrial,
  decideRetry,
  type Failure,
  MOST_BLAMED_FAILURES,
  MOST_BLAMED_LOSSES_OF_ALL,
  needsProof,
  retryBudgetLeft,
  type ServerStanding,
  type TurnHistory,
} from './decide-retry.ts';
import { Trouble } from './trouble.ts';

const NONE: TurnHistory = {
  ...{ failures: 0, blamedFailures: 0, losses: 0, blamedLosses: 0, deathsWithout: 0, refusals: 0, overloads: 0 },
  ...{ rejections: 0, blamedRejections: 0 },
};
const WELL: ServerStanding = {
  ...{
    everCompleted: true,
    refusalsInARow: 0,
    rejectionsInARow: 0,
    quietMs: 0,
    patienceMs: 60_000,
    isWorking: false,
    retryBudgetLeft: 100,
  },
};
const AWAY = { ...WELL, quietMs: 60_001 };

function failure(outcome: Failure['outcome'], change: Partial<Failure> = {}): Failure {
  return { outcome, deadline: false, because: 'why', retryAfterMs: 0, ...change };
}
const decide = (outcome: Failure, history: Partial<TurnHistory>, standing: Partial<ServerStanding> = {}) =>
  decideRetry(outcome, { ...NONE, ...history }, { ...WELL, ...standing }, () => 1);

test.each([
  ['turned away once', failure('unauthorised'), { rejections: 1 }, { rejectionsInARow: 1 }, 'again'],
  ['the key is wrong', failure('unauthorised'), { rejections: 1 }, { rejectionsInARow: 3 }, 'stop'],
  ['turned away, and others are answered', failure('unauthorised'), { rejections: 4, blamedRejections: 4 }, {}, 'set-aside'],
  ['refused, and others are answered', failure('refused'), { refusals: 1 }, {}, 'set-aside'],
  ['refused, and nobody was ever answered', failure('refused'), { refusals: 1 }, { everCompleted: false }, 'again'],
  ['refused, as twenty others in a row', failure('refused'), { refusals: 1 }, { refusalsInARow: 20 }, 'again'],
  [
    'longer than the context, and nobody was ever answered',
    failure('refused', { reason: 'longer-than-context' }),
    {},
    { everCompleted: false },
    'set-aside',
  ],
  [
    'no room for the answer, as twenty others',
    failure('refused', { reason: 'no-room-for-answer' }),
    {},
    { refusalsInARow: 20 },
    'set-aside',
  ],
  ['no prompt has room', failure('refused', { reason: 'max-tokens-too-large' }), {}, {}, 'stop'],
  ['later', failure('overloaded'), { overloads: 50 }, {}, 'again'],
  ['later, and nothing is answered for ever', failure('overloaded'), { overloads: 50 }, AWAY, 'stop'],
  ['later, because long answers are worked on', failure('overloaded'), { overloads: 50 }, { ...AWAY, isWorking: true }, 'again'],
  ['5xx for everyone', failure('failed'), { failures: 50 }, {}, 'again'],
  ['5xx for this prompt alone', failure('failed'), { failures: 4, blamedFailures: 4 }, {}, 'set-aside'],
  ['5xx thrice for this prompt alone', failure('failed'), { failures: 3, blamedFailures: 3 }, {}, 'again'],
  ['a wrong reply to this prompt alone', failure('malformed'), { failures: 4, blamedFailures: 4 }, {}, 'set-aside'],
  ['its own deadline, others answered', failure('lost', { deadline: true }), { failures: 4, blamedFailures: 4 }, {}, 'set-aside'],
  [
    'too many failures of too many prompts',
    failure('failed'),
    { failures: 1, blamedFailures: 1 },
    { retryBudgetLeft: 0 },
    'stop',
  ],
  ['lost sixty times in company', failure('lost'), { losses: 60 }, {}, 'again'],
  ['lost four times as the only suspect', failure('lost'), { losses: 6, blamedLosses: 4 }, {}, 'set-aside'],
  [
    'the same, but the server dies without it too',
    failure('lost'),
    { losses: 6, blamedLosses: 4, deathsWithout: 4 },
    {},
    'again',
  ],
  ['the same for ever', failure('lost'), { losses: 8, blamedLosses: 6, deathsWithout: 99 }, {}, 'set-aside'],
] as const)('%s', (_what, outcome, history, standing, kind) => {
  expect(decide(outcome, history, standing).kind).toBe(kind);
});

test('what is set aside has the name of its reason', () => {
  const reasonOf = (outcome: Failure, history: Partial<TurnHistory>) => {
    const decision = decide(outcome, history);
    return decision.kind === 'set-aside' ? decision.reason : decision.kind;
  };
  expect(reasonOf(failure('refused'), { refusals: 1 })).toBe('refused');
  expect(reasonOf(failure('refused', { reason: 'answer-withheld' }), { refusals: 1 })).toBe('answer-withheld');
  expect(reasonOf(failure('refused', { reason: 'longer-than-context' }), {})).toBe('longer-than-context');
  expect(reasonOf(failure('lost'), { losses: 6, blamedLosses: 4 })).toBe('poison-kills');
  expect(reasonOf(failure('failed'), { failures: 4, blamedFailures: 4 })).toBe('poison-fails');
});

test('a server that answers nobody is given up, resumable; one that refuses everybody is not what was asked for', () => {
  const trial = (outcome: Failure['outcome'], standing: ServerStanding) =>
    decideAfterTrial(failure(outcome), 3, standing, () => 1);
  for (const outcome of ['failed', 'malformed', 'lost', 'overloaded'] as const) {
    expect(trial(outcome, WELL)).toMatchObject({ kind: 'again' });
    expect(trial(outcome, AWAY)).toMatchObject({ kind: 'stop', code: 'server.gave-up' });
  }
  expect(trial('unauthorised', WELL)).toMatchObject({ kind: 'again' });
  for (const outcome of ['refused', 'unauthorised'] as const)
    expect(trial(outcome, { ...WELL, rejectionsInARow: 3 })).toMatchObject({ kind: 'stop', code: 'server.rejects' });
  expect(decide(failure('failed'), {}, { retryBudgetLeft: 0 })).toMatchObject({ code: 'server.gave-up' });
});

test('the wait doubles up to half a minute, half of it random; Retry-After is heeded, within reason', () => {
  const wait = (history: Partial<TurnHistory>, random: number) =>
    decideRetry(failure('failed'), { ...NONE, ...history }, WELL, () => random);
  expect([1, 2, 3, 7, 40].map((failures) => wait({ failures }, 1))).toEqual(
    [500, 1000, 2000, 30_000, 30_000].map((afterMs) => ({ kind: 'again', afterMs })),
  );
  expect(wait({ failures: 1 }, 0)).toEqual({ kind: 'again', afterMs: 250 });
  const later = (retryAfterMs: number) => decide(failure('overloaded', { retryAfterMs }), { overloads: 1 });
  expect(later(7_000)).toEqual({ kind: 'again', afterMs: 7_000 });
  expect(later(86_400_000)).toEqual({ kind: 'again', afterMs: 600_000 });
});

test('proof is needed for a prompt in trouble whose server has answered nothing since', () => {
  expect(needsProof({ ...NONE, failures: 1 }, false)).toBe(false);
  expect(needsProof({ ...NONE, failures: 2 }, false)).toBe(true);
  expect(needsProof({ ...NONE, failures: 1, losses: 1 }, false)).toBe(true);
  expect(needsProof({ ...NONE, refusals: 1 }, false)).toBe(true);
  expect(needsProof({ ...NONE, rejections: 1 }, false)).toBe(true);
  expect(needsProof({ ...NONE, failures: 9 }, true)).toBe(false);
  expect(needsProof({ ...NONE, overloads: 9 }, false)).toBe(false);
});

test('retries: a hundred to begin with, and one for every five answers', () => {
  expect([retryBudgetLeft(0, 0), retryBudgetLeft(9, 1), retryBudgetLeft(500, 200)]).toEqual([100, 100, 0]);
});

const OUTCOMES = fc.constantFrom(
  ...(['failed', 'malformed', 'lost', 'overloaded', 'refused'] as const).map((outcome) => failure(outcome)),
  failure('lost', { deadline: true }),
);

/** A prompt that fails as told, on a server that answers `others` more requests before each of its attempts. */
function play(outcomes: readonly Failure[], others: (attempt: number) => number): number | undefined {
  const trouble = new Trouble();
  const fleet = { answers: 0, deaths: 0, answersOf: () => fleet.answers };
  for (const [attempt, outcome] of outcomes.entries()) {
    const sending = { endpoint: { server: 's' }, sinceMs: 0, answersBefore: fleet.answers };
    fleet.answers += others(attempt);
    if (outcome.outcome === 'lost' && !outcome.deadline) fleet.deaths += 1;
    trouble.note(outcome, sending as never, fleet);
    const standing = { ...WELL, everCompleted: fleet.answers > 0 };
    if (decideRetry(outcome, trouble.history(fleet.deaths), standing, () => 1).kind === 'set-aside') return attempt + 1;
  }
  return undefined;
}

test('a prompt that always fails while others are answered is set aside after a bounded number of attempts', () => {
  const most = MOST_BLAMED_FAILURES + MOST_BLAMED_LOSSES_OF_ALL + 2;
  fc.assert(
    fc.property(fc.array(OUTCOMES, { minLength: 100, maxLength: 100 }), fc.integer({ min: 1, max: 9 }), (outcomes, others) => {
      const real = outcomes.filter(({ outcome }) => outcome !== 'overloaded');
      fc.pre(real.length > most);
      expect(play(real, () => others)).toBeLessThanOrEqual(most);
    }),
  );
});

test('a server that answers nobody never costs a prompt its place, however long and however it fails', () => {
  fc.assert(
    fc.property(fc.array(OUTCOMES, { minLength: 1, maxLength: 200 }), (outcomes) => {
      expect(play(outcomes, () => 0)).toBeUndefined();
    }),
  );
});

test('a burst that ends between two failures of a prompt counts once against it, not for the whole burst', () => {
  const burst = Array.from({ length: 30 }, () => failure('failed'));
  expect(play(burst, (attempt) => (attempt === 20 ? 5 : 0))).toBeUndefined();
});
