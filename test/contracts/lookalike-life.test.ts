/** The lookalike engine as a program: its clock, its load, its end, and what is left when it is killed. */
import { spawnSync } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { answeredLines, ask, CHAT, sha256, startLookalike, until } from '../support/lookalike-bench.ts';
import { readJournal } from '../support/read-journal.ts';

test('the clock rate divides every latency, and slow adds to it', async () => {
  const scenario = { latency: { kind: 'fixed', ms: 60_000 }, faults: [{ when: { request: 2 }, do: 'slow', ms: 60_000 }] };
  const { post } = await startLookalike({ scenario, args: ['--clock-rate', '300'] }); // 60 s pass in 200 ms
  const body = { text: 'x' };
  const fixed = (await post('/generate', body)).json;
  const slow = (await post('/generate', body)).json;
  expect(fixed.meta_info.e2e_latency).toBeGreaterThanOrEqual(59);
  expect(slow.meta_info.e2e_latency).toBeGreaterThanOrEqual(119);
});

test('five hundred requests are held at once, and those whose client leaves are written down as aborted', async () => {
  const bench = await startLookalike({ scenario: { faults: [{ do: 'hang' }] } });
  const left = new AbortController();
  setMaxListeners(500, left.signal);
  const held = Array.from({ length: 500 }, (_, n) => bench.post(CHAT, ask(`prompt ${n}`), left.signal).catch(() => 'left'));
  await until(async () => (await bench.stats()).inFlight === 500);
  left.abort();
  expect(new Set(await Promise.all(held))).toEqual(new Set(['left']));
  await until(async () => (await bench.stats()).inFlight === 0);
  expect(await bench.stats()).toMatchObject({ received: 500, answered: 0, aborted: 500, maxInFlight: 500 });
  const lines = readJournal(bench.journal);
  expect(lines.filter(({ event }) => event === 'received')).toHaveLength(500);
  expect(lines.filter((line) => line.event === 'aborted' && line.because === 'client-gone')).toHaveLength(500);
});

test('an answer that a client has seen is in the journal, even when the lookalike is killed in between', async () => {
  const bench = await startLookalike({ scenario: { latency: { kind: 'uniform', minMs: 0, maxMs: 300 } } });
  const asked = Array.from({ length: 200 }, (_, n) => bench.post(CHAT, ask(`prompt ${n}`)).catch(() => undefined));
  await until(async () => answeredLines(bench).length >= 50);
  bench.engine.kill('SIGKILL');
  const seen = (await Promise.all(asked)).flatMap((answer) =>
    answer === undefined ? [] : [answer.json.choices[0].message.content],
  );
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.length).toBeLessThan(200);
  const given = new Set(answeredLines(bench).map(({ textSha256 }) => textSha256));
  expect(seen.filter((text) => !given.has(sha256(text)))).toEqual([]);
});

test('a journal that cannot be written ends the program before an answer leaves', async () => {
  const bench = await startLookalike({ journal: '/dev/full' });
  await expect(bench.post(CHAT, ask('x'))).rejects.toThrow();
  expect(await bench.engine.exited).toEqual({ code: 4, signal: null });
  expect(bench.engine.stderr()).toContain('ENOSPC');
});

test('it ends when its lifeline closes and when it is told to', async () => {
  const held = await startLookalike();
  held.engine.closeStdin();
  expect(await held.engine.exited).toEqual({ code: 0, signal: null });
  const told = await startLookalike();
  expect(await told.engine.stop()).toEqual({ code: 0, signal: null });
});

test('a wrong command line or scenario is answered with exit 2 and what to type', () => {
  const program = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));
  const run = (...args: string[]) => spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  for (const args of [
    ['--prot', '1'],
    [],
    ['--port', '99999'],
    ['--port', '0', '--clock-rate', '0'],
    ['--port', '0', '--scenario', '/no/such'],
  ]) {
    const { status, stderr } = run(...args);
    expect({ args, status }).toEqual({ args, status: 2 });
    expect(stderr).toMatch(/^error {2}usage\.flag\n(.*\n)+try {6}\S/);
  }
});
