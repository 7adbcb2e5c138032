/** What people read: short, with its units, and the same for the same numbers. */
import { expect, test } from 'vitest';
import type { PartitionProgress, Progress } from '../../app/progress.ts';
import { AerieError } from '../../base/errors.ts';
import { EVENT_KINDS } from '../../base/events.ts';
import { renderErrorText } from './error-text.ts';
import { renderEvent } from './event.ts';
import { renderProgressLine, renderProgressLines } from './progress.ts';
import { renderTable } from './table.ts';

const PARTITION: PartitionProgress = {
  ...{ name: 'B1', enrolled: 1000, enrolmentOpen: true, done: 240, aside: 10, dropped: 0, answers: 300, truncated: 30 },
  ...{ spentTokens: 1_234_567, budget: 20_000_000 },
};
const progress = (partitions: number, change: Partial<Progress> = {}): Progress => ({
  partitions: Array.from({ length: partitions }, (_, at) => ({ ...PARTITION, name: `B${at + 1}` })),
  ...{ inFlight: 60, gate: 64, tokensPerS: 1340, elapsedMs: 125_000, draining: false },
  remainingMs: { low: 3_600_000, high: 7_200_000 },
  ...change,
});

test('progress is at most eight lines, each within the terminal', () => {
  for (const partitions of [0, 1, 6, 7, 300]) {
    for (const columns of [20, 80, 200]) {
      const lines = renderProgressLines(progress(partitions), columns);
      expect(lines.length).toBeLessThanOrEqual(8);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(columns);
    }
  }
  expect(renderProgressLines(progress(9), 200)[6]).toBe('… and 3 more partitions');
});

test('a partition says how far it is, of what, and what went wrong', () => {
  const [line, totals] = renderProgressLines(progress(1), 200);
  expect(line).toBe('B1 [####............] 240 of 1,000+ · 1.2M of 20M tokens · 10 % truncated · 10 set aside');
  expect(totals).toMatch(/^1,340 tok\/s over .* · 60 of 64 in flight · 2 min 5 s · 1 h to 2 h left$/);
});

test('the line for pipes has the same facts, and says what is not known yet', () => {
  expect(renderProgressLine(progress(2))).toContain('480 of 2,000+ done · 2.5M tokens · 1,340 tok/s');
  const early = progress(1, { tokensPerS: 0, remainingMs: undefined, draining: true });
  expect(renderProgressLine(early)).toContain('draining · no rate yet · 60 of 64 in flight');
});

test('a table has its numbers to the right and no blanks at the ends of its lines', () => {
  expect(
    renderTable(
      ['name', 'tokens'],
      [
        ['B1', '1,234'],
        ['longer', '7'],
      ],
    ).split('\n'),
  ).toEqual(['name    tokens', '------  ------', 'B1       1,234', 'longer       7']);
  expect(renderTable(['a'], [])).toBe('a\n-');
});

test('an error says what happened, what is known, the evidence, and what to type', () => {
  const error = new AerieError('server.gave-up', 'vllm-0 is given up.\nTwo lines.', {
    because: 'it hangs',
    evidence: ['log:1  a', 'log:2  b'],
    remedy: 'first\nsecond',
  });
  const lines = renderErrorText(error).split('\n');
  expect(lines.length).toBe(9);
  for (const text of [
    'server.gave-up',
    'vllm-0 is given up.',
    'Two lines.',
    'it hangs',
    'log:1  a',
    'log:2  b',
    'first',
    'second',
  ])
    expect(lines.filter((line) => line.includes(text)).length, text).toBe(1);
  expect(renderErrorText(new AerieError('run.absent', 'x', { remedy: 'y' })).split('\n').length).toBe(4);
});

test('every kind of event is one line or none, whatever facts it has', () => {
  for (const kind of EVENT_KINDS) {
    const line = renderEvent({ n: 1, at: 0, kind, subject: 'B1', facts: {} });
    if (line !== undefined) expect(line).not.toContain('\n');
  }
});
