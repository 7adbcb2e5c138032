/** `in-flight: auto`: the story's pools, the bounds, and no change without a reason. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AutoGate, type AutoInput, autoLimit } from './auto-gate.ts';

/** Answers of 4,000 tokens are the story's; prompts of 700 are assumed, as where the twin plays it. */
const STORY = { promptTokens: 700, outputTokens: 4000 };

const input = (changed: Partial<AutoInput> = {}): AutoInput => ({
  servers: [{ poolTokens: 376_029, sequences: 0 }],
  measured: { ...STORY, answers: 1000 },
  expected: { promptTokens: 700, outputTokens: 8192 },
  ...{ otherwise: 64, most: 4096 },
  ...changed,
});
const ofPool = (poolTokens: number, sequences = 0): Partial<AutoInput> => ({ servers: [{ poolTokens, sequences }] });

test('the pools of the story: at least what was seen to run, and not twice as many', () => {
  expect(autoLimit(input())).toBe(153); // 134–150 ran, and the client had 150
  expect(autoLimit(input(ofPool(159_277)))).toBe(64); // 34–35 ran, with a reserve for what is still to come
  expect(autoLimit(input({ ...ofPool(376_029), measured: { ...STORY, answers: 29 } }))).toBe(86); // by the cap, before answers
});

test('what the server works on at once is not passed, and servers add up', () => {
  expect(autoLimit(input(ofPool(376_029, 48)))).toBe(48);
  const servers = [
    { poolTokens: 376_029, sequences: 100 },
    { poolTokens: 159_277, sequences: 100 },
    { poolTokens: 0, sequences: 0 },
    { poolTokens: 0, sequences: 8 },
  ];
  expect(autoLimit(input({ servers }))).toBe(100 + 64 + 64 + 8);
  expect(autoLimit(input({ servers, most: 150 }))).toBe(150);
});

test('whatever the lengths, it is a whole number from 1 to the most, and a larger pool never lowers it', () => {
  const tokens = fc.oneof(fc.nat(1e6), fc.double({ min: 0, max: 1e9, noNaN: true }));
  fc.assert(
    fc.property(
      tokens,
      tokens,
      fc.nat(1e8),
      fc.nat(5000),
      fc.nat(100),
      (promptTokens, outputTokens, pool, sequences, answers) => {
        const measured = { promptTokens, outputTokens, answers };
        const limit = autoLimit(input({ ...ofPool(pool + 1, sequences), measured }));
        expect(Number.isInteger(limit) && limit >= 1 && limit <= 4096).toBe(true);
        expect(autoLimit(input({ ...ofPool(2 * pool + 2, sequences), measured }))).toBeGreaterThanOrEqual(limit);
      },
    ),
  );
});

test('it changes with the servers, at the thirtieth answer and when the context has moved by a tenth, and says why', () => {
  const gate = new AutoGate();
  const measured = (answers: number, outputTokens = 4000) => ({ measured: { ...STORY, answers, outputTokens } });
  expect(gate.follow(input({ servers: [] }))).toBeUndefined();
  expect(gate.follow(input(measured(0)))).toEqual({
    limit: 86,
    because: '376,029 tokens of KV pool and 4,796 of live context (a prompt of 700 and half of an answer of 8,192, expected)',
  });
  for (const answers of [1, 29]) expect(gate.follow(input(measured(answers)))).toBeUndefined();
  expect(gate.follow(input(measured(30)))).toEqual({
    limit: 153,
    because:
      '376,029 tokens of KV pool and 2,700 of live context (a prompt of 700 and half of an answer of 4,000, of 30 answers)',
  });
  expect(gate.follow(input(measured(31, 4500)))).toBeUndefined(); // 2,950: 9 % more
  expect(gate.follow(input(measured(32, 4600)))?.limit).toBe(137);
  expect(gate.follow(input(measured(33, 4100)))).toBeUndefined(); // 2,750 is 8 % less than 3,000
  expect(gate.follow(input({ ...measured(34, 4600), ...ofPool(159_277) }))?.limit).toBe(58);
  expect(gate.follow(input({ ...measured(35, 4600), ...ofPool(0) }))).toEqual({
    limit: 64,
    because: 'no server says what its KV pool holds',
  });
});
