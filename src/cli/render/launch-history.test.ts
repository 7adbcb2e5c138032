import { describe, expect, test } from 'vitest';
import type { Event } from '../../base/events.ts';
import { renderHistory } from './launch-history.ts';

const ended = (n: number): Event => ({
  n,
  at: n * 1000,
  kind: 'launch.ended',
  subject: 's',
  facts: { launch: n, how: 'crashed: no memory' },
});
/** Without the time, which is that of the wall. */
const bare = (line: string) => line.replace(/^ {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}/, '');

describe('renderHistory', () => {
  test('has a line for each event, cut where it would fill the screen', () => {
    const verdict: Event = {
      ...{ n: 2, at: 2000, kind: 'verdict.given', subject: 's' },
      facts: {
        launch: 1,
        state: 'crashed',
        phase: 'serving',
        title: 'x'.repeat(300),
        cause: 'c',
        confidence: 'high',
        remedy: 'Lower it.',
      },
    };
    const [head, first = '', second = ''] = renderHistory([ended(1), verdict], []);
    expect(head).toBe('launches   2 events');
    expect(bare(first)).toBe('s: launch 1 ended, crashed: no memory');
    expect(bare(second)).toMatch(/^s: launch 1 is crashed in serving: x+…$/);
    expect(bare(second)).toHaveLength(200);
  });

  test('shows the newest, and says how many there are', () => {
    const lines = renderHistory(
      Array.from({ length: 50 }, (_, at) => ended(at + 1)),
      [],
    );
    expect(lines).toHaveLength(21);
    expect(lines[0]).toBe('launches   the last 20 of 50 events (all with --json)');
    expect(bare(lines.at(-1) ?? '')).toBe('s: launch 50 ended, crashed: no memory');
  });

  test('says where a living launch is, and nothing where there is none', () => {
    const living = { server: 's', launch: 3, pid: 7, port: 30_000, log: '/r/s.log', readyAt: 0, machine: '', unseen: '' };
    expect(renderHistory([], [living])).toEqual(['lives      s: launch 3, pid 7, port 30000, not ready yet, log /r/s.log']);
    const away = { ...living, machine: 'gpu-box', unseen: 'gpu-box is out of reach' };
    expect(renderHistory([], [{ ...living, machine: 'gpu-box' }, away])).toEqual([
      'lives      s: launch 3 on gpu-box, pid 7, port 30000, not ready yet, log /r/s.log',
      'unseen     s: launch 3 on gpu-box, pid 7, may live: gpu-box is out of reach',
    ]);
    expect(renderHistory([], [])).toEqual([]);
  });
});
