/** `in-flight: auto` from start to end: before answers by their cap, then by their mean, and never more than is worked on at once. */
import { expect, test } from 'vitest';
import { numbered, openWork } from '../support/generation-bench.ts';
import { query } from '../support/run-folder.ts';
import { tinyProject } from '../support/tiny-project.ts';

test('against a server with a known pool the gate follows it, and the requests follow the gate', async () => {
  const POOL = 3_200;
  const work = await openWork({
    prompts: numbered(300),
    scenario: { latency: { kind: 'fixed', ms: 100 }, serverInfo: { max_total_num_tokens: POOL } },
    settings: { 'in-flight': 'auto' },
    maxTokens: 200,
  });
  const { report } = await work.run();
  const changes = work.events.flatMap(({ kind, facts }) => (kind === 'gate.changed' ? [facts] : []));
  expect(changes).toHaveLength(2);
  const [byCap, byMean] = changes;
  expect(byCap?.['because']).toMatch(/^3,200 tokens of KV pool and [\d,]+ of live context .* answer of 200, expected\)$/);
  expect(byMean?.['because']).toMatch(/answer of 40, of 3\d answers\)$/);
  const contextOf = (because: unknown) => Number(/and (\d+) of live context/.exec(String(because))?.[1]);
  for (const change of changes) {
    const exact = (1.1 * POOL) / contextOf(change['because']); // which is rounded in the sentence
    expect(Math.abs(Number(change['to']) - exact)).toBeLessThan(2);
  }
  expect([byCap?.['from'], byMean?.['from']]).toEqual([64, byCap?.['to']]);
  expect(Number(byMean?.['to'])).toBeGreaterThan(Number(byCap?.['to']));
  expect(report?.session.mostInFlight).toBe(byMean?.['to']);
  expect((await work.left()).records).toHaveLength(300);
});

test('the embedded engine works on as many as it has sequences', async () => {
  const project = await tinyProject({ 'in-flight': 'auto' });
  const done = await project.aerie(['run', 'run.yaml']);
  expect(done.code, done.stderr).toBe(0);
  const changes = query(project.path('runs/r'), `SELECT facts FROM events WHERE kind = 'gate.changed'`);
  const facts = changes.map((row) => JSON.parse(String(row['facts'])) as Readonly<Record<string, unknown>>);
  expect(facts).toMatchObject([{ from: 8, to: 4, because: expect.stringMatching(/^4,096 tokens of KV pool and /) as unknown }]);
  expect(done.stderr).toContain('in flight: 8 → 4, 4,096 tokens of KV pool');
});
