import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasLoop, LEAST_TIMES, LEAST_TOKENS } from './repetition.ts';

const id = fc.integer({ min: 0, max: 49_151 });
const repeat = (stretch: readonly number[], times: number) => Array.from({ length: times }, () => stretch).flat();

/** By definition, in quadratic time: some stretch is there often enough, one after the other. */
function loopsByHand(ids: readonly number[]): boolean {
  for (let period = 1; period * LEAST_TIMES <= ids.length; period += 1) {
    let held = 0;
    for (let at = period; at < ids.length; at += 1) {
      held = ids[at] === ids[at - period] ? held + 1 : 0;
      if (held + period >= Math.max(LEAST_TOKENS, LEAST_TIMES * period)) return true;
    }
  }
  return false;
}

describe('a loop', () => {
  it('is found wherever it is, whatever is repeated', () => {
    const stretch = fc.array(id, { minLength: 1, maxLength: 300 });
    const around = fc.array(id, { maxLength: 200 });
    fc.assert(
      fc.property(stretch, around, around, (loop, before, after) => {
        // Two turns more than needed: one to see the period, one that a chance match at its border may cost.
        const times = Math.max(LEAST_TIMES, Math.ceil(LEAST_TOKENS / loop.length)) + 2 + Math.ceil(16 / loop.length);
        return hasLoop([...before, ...repeat(loop, times), ...after]);
      }),
    );
  });

  it('is only found where there is one', () => {
    const few = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 400 });
    const patched = fc
      .tuple(fc.array(id, { minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 12 }), few)
      .map(([loop, times, rest]) => [...repeat(loop, times), ...rest, ...repeat(loop, times)]);
    fc.assert(fc.property(fc.oneof(few, patched), (ids) => !hasLoop(ids) || loopsByHand(ids)));
  });

  it('is not a rule of dashes, a table, or what is said three times', () => {
    expect(hasLoop(repeat([45], LEAST_TOKENS - 1))).toBe(false);
    expect(hasLoop(repeat([45], LEAST_TOKENS))).toBe(true);
    const chorus = Array.from({ length: 100 }, (_, at) => at);
    expect(hasLoop(repeat(chorus, LEAST_TIMES - 1))).toBe(false);
    expect(hasLoop(repeat(chorus, LEAST_TIMES))).toBe(true);
    // A list with a number that counts up is no loop: each line is new.
    expect(hasLoop(Array.from({ length: 200 }, (_, at) => [7, 8, 9, 1000 + at, 10, 11]).flat())).toBe(false);
  });
});
