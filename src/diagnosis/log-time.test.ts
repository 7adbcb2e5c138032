import { describe, expect, it } from 'vitest';
import { readTime } from './log-time.ts';

const day = (text: string) => Date.parse(`${text}Z`);

describe('readTime', () => {
  it.each([
    ['[2026-01-30 01:13:16 TP0] x', '2026-01-30T01:13:16'],
    ['2026-06-04 12:30:37.525 | [2026-06-04 09:30:37] x', '2026-06-04T12:30:37'],
    ['2025-04-27 16:14:33,560 - INFO - flashinfer.jit: x', '2025-04-27T16:14:33'],
    ['2026-03-04T05:06:07.123456789Z x', '2026-03-04T05:06:07'],
  ])('%s', (line, expected) => {
    expect(readTime(line, {})).toBe(day(expected));
  });

  it('gives a time without a year the one nearest to what was read before, else the last before now', () => {
    const line = '(EngineCore pid=7) INFO 12-31 23:59:59 [a.py:1] x';
    expect(readTime(line, { before: day('2026-01-01T00:00:10') })).toBe(day('2025-12-31T23:59:59'));
    expect(readTime(line, { now: day('2026-07-01T00:00:00') })).toBe(day('2025-12-31T23:59:59'));
    expect(readTime('Apr 17 15:35:31 gpu-host bash[6277]: x', { now: day('2026-11-30T00:00:00') })).toBe(
      day('2026-04-17T15:35:31'),
    );
  });

  it('prefers the engine’s own time to the one of what carried the line', () => {
    expect(
      readTime('Apr 18 15:35:31 host bash[1]: (APIServer pid=1) INFO 04-17 15:35:31 [l.py:2] x', {
        now: day('2026-11-30T00:00:00'),
      }),
    ).toBe(day('2026-04-17T15:35:31'));
  });

  it.each([['no time at all'], ['[2026-13-99 99:99:99] x'.replace('2026-13-99 99:99:99', 'abcd')]])('%s: undefined', (line) => {
    expect(readTime(line, {})).toBeUndefined();
  });
});
