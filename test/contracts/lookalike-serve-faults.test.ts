/** What goes wrong with a lookalike at work, and what is to be seen of it from outside: hangs, lies, zombies, sudden deaths. */
import { expect, test } from 'vitest';
import { accountOf, verdictOf } from '../support/diagnose-log.ts';
import { KIMI, STORY } from '../support/launch-bench.ts';
import { until } from '../support/lookalike-bench.ts';
import { readJournal } from '../support/read-journal.ts';
import { type ServeBench, startServing } from '../support/serve-bench.ts';

const LONG = { ...STORY, answerTokens: { kind: 'fixed', tokens: 9000 } };
const FLAGS = [...KIMI, '--mem-fraction-static', '0.88', '--enable-metrics'];
const long = (nth: number) => ({ text: `prompt ${nth}`, sampling_params: { max_new_tokens: 9000 } });
const settled = (asked: Promise<unknown>) =>
  Promise.race([asked.then(() => true), new Promise((later) => setTimeout(later, 300, false))]);

async function atWork(as = 'sglang@0.5.8'): Promise<{ bench: ServeBench; asked: Promise<unknown> }> {
  const bench = await startServing({ as, scenario: LONG, flags: FLAGS, clockRate: 100 });
  const asked = Promise.all([0, 1, 2].map((nth) => bench.ask('POST', '/generate', long(nth)).catch(() => 'gone')));
  await bench.moreReadings(3);
  return { bench, asked };
}

test('a scheduler that hangs: an open port, stale figures, no answer, and only the probe in the log', async () => {
  const { bench, asked } = await atWork();
  const from = await bench.fault({ do: 'scheduler-hangs' });
  const before = (await bench.ask('GET', '/metrics')).text;
  expect((await bench.ask('GET', '/health')).status).toBe(503); // twenty seconds of its clock
  expect((await bench.ask('GET', '/v1/models')).status).toBe(200);
  expect(await settled(bench.ask('GET', '/server_info'))).toBe(false); // through the scheduler's loop
  expect(await settled(asked)).toBe(false);
  expect((await bench.ask('GET', '/metrics')).text).toBe(before);
  const since = bench.log().slice(from);
  expect(since).toContain("Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.");
  expect(since).toContain('"GET /health HTTP/1.1" 503 Service Unavailable');
  expect(since).not.toMatch(/(Prefill|Decode) batch/);
  const { state } = verdictOf(bench.log(), true);
  expect(state).toBe('hung');
  expect(accountOf(bench.log()).ready).toBeDefined();
  expect(readJournal(bench.journal).filter(({ event }) => event !== 'received')).toEqual([]);
});

test('a hang under a health that lies is healthy to every probe', async () => {
  const { bench, asked } = await atWork();
  const from = await bench.fault({ do: 'scheduler-hangs', health: 'lies' });
  for (let nth = 0; nth < 5; nth++) expect((await bench.ask('GET', '/health')).status).toBe(200);
  expect(await settled(asked)).toBe(false);
  expect(bench.log().slice(from)).not.toMatch(/(Prefill|Decode) batch/);
  expect(verdictOf(bench.log(), true).state).toBe('hung');
});

test('schedulers that die leave a zombie before 0.5.10, and take the server with them from then on', async () => {
  const { bench, asked } = await atWork('sglang@0.5.8');
  const ranks = bench.ranks().length;
  expect(ranks).toBeGreaterThan(0);
  await bench.fault({ do: 'schedulers-die' });
  await until(() => bench.ranks().length < ranks);
  expect((await bench.ask('GET', '/health')).status).toBe(200);
  expect(await settled(asked)).toBe(false);
  const newer = await atWork('sglang@0.5.12');
  await newer.bench.fault({ do: 'schedulers-die' }).catch(() => undefined);
  await newer.bench.exited;
  expect(newer.bench.log()).toContain('crashed with exit code');
});

test('a sudden death leaves no word, and what was in flight is received and nothing else', async () => {
  const { bench, asked } = await atWork();
  const from = bench.log().length;
  await bench.fault({ do: 'die', when: { afterMs: 0 } }).catch(() => undefined);
  await bench.exited;
  expect(await asked).toEqual(['gone', 'gone', 'gone']);
  expect(bench.log().slice(from)).not.toMatch(/exception|error|killed/i);
  expect(readJournal(bench.journal).map(({ event }) => event)).toEqual(['received', 'received', 'received']);
});

test('a burst of 5xx and a cut answer come on cue, and the rest goes through the scheduler', async () => {
  const faults = [
    { when: { fromRequest: 1, toRequest: 2 }, do: 'status', status: 502 },
    { when: { request: 3 }, do: 'cut' },
    { when: { request: 4 }, do: 'slow', ms: 60_000 },
  ];
  const bench = await startServing({ scenario: { ...STORY, faults }, flags: FLAGS, clockRate: 100 });
  const ask = (nth: number) => bench.ask('POST', '/generate', { text: `prompt ${nth}` }).catch(() => 'cut' as const);
  const statuses: unknown[] = [];
  for (let nth = 1; nth <= 4; nth++) {
    const reply = await ask(nth);
    statuses.push(reply === 'cut' ? reply : reply.status);
  }
  expect(statuses).toEqual([502, 502, 'cut', 200]);
  expect(readJournal(bench.journal).map(({ event }) => event)).toEqual([
    ...['received', 'answered', 'received', 'answered', 'received', 'aborted', 'received', 'answered'],
  ]);
});

test('paused, nothing moves and nothing is lost; it goes on where it was', async () => {
  const { bench, asked } = await atWork();
  expect((await bench.ask('POST', '/pause_generation', { mode: 'in_place' })).status).toBe(200);
  const from = bench.log().length;
  expect(await settled(asked)).toBe(false);
  expect(bench.log().slice(from)).not.toMatch(/Decode batch/);
  expect((await bench.ask('POST', '/continue_generation', {})).status).toBe(200);
  for (const reply of (await asked) as { status: number }[]) expect(reply.status).toBe(200);
});
