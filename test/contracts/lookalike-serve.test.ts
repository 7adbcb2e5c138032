/** The lookalike at work under a real launcher's flags: the pool, its log, its figures, and what its clients get. */
import { setMaxListeners } from 'node:events';
import { expect, test } from 'vitest';
import { readSamples } from '../../src/engine/prometheus.ts';
import { verdictOf } from '../support/diagnose-log.ts';
import { KIMI, STORY } from '../support/launch-bench.ts';
import { sha256, until } from '../support/lookalike-bench.ts';
import { readJournal } from '../support/read-journal.ts';
import { keepInFlight, median, startServing } from '../support/serve-bench.ts';

/** What explains 34.5 running at 0.88 (docs/twin.md): prompts of 700, answers of 4,313 as spread as their mean, cap 16,384. */
const LENGTHS = { answerTokens: { kind: 'lognormal', mean: 4313, sigma: 0.83, max: 16_384 } };
const at = (fraction: string, kv: string, ...more: string[]) => [
  ...KIMI,
  '--mem-fraction-static',
  fraction,
  '--kv-cache-dtype',
  kv,
  ...more,
];
const prompt = (nth: number, tokens = 700) => `${nth} `.repeat(Math.ceil(tokens / `${nth} `.length)).slice(0, tokens);
const storyRequest = (nth: number) => ({
  text: prompt(nth),
  sampling_params: { max_new_tokens: 16_384, sampling_seed: nth },
});

test('0.88 bf16 with 150 in flight: about 35 run, the rest waits, and log, metrics and diagnosis agree', async () => {
  const bench = await startServing({
    scenario: { ...STORY, ...LENGTHS },
    flags: at('0.88', 'bf16', '--enable-metrics'),
    clockRate: 400,
  });
  const load = keepInFlight(bench, 150, storyRequest);
  // Half an hour: all began at once, and the long answers of that first batch must be through.
  await bench.moreReadings(1000);
  const from = bench.log().length;
  await bench.moreReadings(1500);
  const steady = bench.readings(from);
  // Which 40 minutes these are is the machine's doing; scheduler.test.ts holds the exact figure on a clock of its own.
  const running = median(steady.map((one) => one.running));
  expect(running).toBeGreaterThanOrEqual(29);
  expect(running).toBeLessThanOrEqual(41);
  expect(median(steady.map(({ queued }) => queued))).toBeGreaterThan(90);
  expect(Math.max(...steady.map(({ usage }) => usage))).toBeLessThanOrEqual(1);
  expect(load.answered()).toBeGreaterThan(300);

  // The gauges are those of the last batch that was printed: some line says the same.
  const { text } = await bench.ask('GET', '/metrics');
  const gauge = (name: string) => readSamples(text, `sglang:${name}`)[0]?.value ?? Number.NaN;
  expect(bench.log()).toMatch(
    new RegExp(`token usage: ${gauge('token_usage').toFixed(2)}, .*#queue-req: ${gauge('num_queue_reqs')}\\b`),
  );
  expect(gauge('max_total_num_tokens')).toBe(159_277);
  expect(gauge('num_running_reqs') + gauge('num_queue_reqs')).toBeGreaterThan(100);

  // Some were retracted, as in the real one; a full pool with a queue is the worst that can be said of it.
  expect(bench.log()).toMatch(
    /TP3\] KV cache pool is full\. Retract requests\. #retracted_reqs: \d+, #new_tokens_gained: \d+, #new_token_ratio: 0\.\d{4} -> [01]\.\d{4}\n/,
  );
  expect(['none', 'kv-cache-saturated']).toContain(verdictOf(bench.log()).cause);
});

test('0.90 fp8 begins with nearly all of 150 running, and is diagnosed as serving', async () => {
  const bench = await startServing({ scenario: { ...STORY, ...LENGTHS }, flags: at('0.90', 'fp8_e4m3'), clockRate: 50 });
  keepInFlight(bench, 150, storyRequest);
  await until(() => bench.readings().some(({ running, queued }) => running + queued >= 145));
  const from = bench.log().length;
  await bench.moreReadings(30);
  const early = bench.readings(from);
  expect(median(early.map(({ running }) => running))).toBeGreaterThan(110);
  expect(median(early.map(({ generated }) => generated))).toBeGreaterThan(1000);
  const { state, cause } = verdictOf(bench.log());
  expect({ state, cause }).toEqual({ state: 'serving', cause: 'none' });
});

test('an operator ends everything: what was said is given, the pool is free, and the cache can be flushed', async () => {
  const bench = await startServing({
    scenario: { ...STORY, answerTokens: { kind: 'fixed', tokens: 9000 } },
    flags: at('0.88', 'bf16'),
    clockRate: 100,
  });
  const asked = [0, 1].map((nth) => bench.ask('POST', '/generate', storyRequest(nth)));
  await bench.moreReadings(3);
  expect((await bench.ask('POST', '/flush_cache')).status).toBe(400);
  expect((await bench.ask('GET', '/get_load')).json).toMatchObject([{ num_reqs: 2, num_waiting_reqs: 0 }]);
  expect((await bench.ask('POST', '/abort_request', { rid: '', abort_all: true })).status).toBe(200);
  for (const { status, json } of await Promise.all(asked)) {
    expect(status).toBe(200);
    expect(json.meta_info.finish_reason.type).toBe('abort');
    expect(json.output_ids.length).toBe(json.meta_info.completion_tokens);
    expect(json.output_ids.length).toBeGreaterThan(100);
  }
  expect((await bench.ask('GET', '/get_load')).json).toMatchObject([{ num_reqs: 0, num_tokens: 0 }]);
  expect((await bench.ask('POST', '/flush_cache')).status).toBe(200);
  expect(bench.log()).toContain('Cache flushed successfully!');
});

test('clients that leave free the pool, and are written down as aborted', async () => {
  const bench = await startServing({
    scenario: { ...STORY, answerTokens: { kind: 'fixed', tokens: 9000 } },
    flags: at('0.88', 'bf16'),
    clockRate: 100,
  });
  const left = new AbortController();
  setMaxListeners(60, left.signal);
  const held = Array.from({ length: 50 }, (_, nth) =>
    bench.ask('POST', '/generate', storyRequest(nth), left.signal).catch(() => 'left'),
  );
  await bench.moreReadings(3);
  left.abort();
  await Promise.all(held);
  await until(async () => (await bench.ask('GET', '/get_load')).json[0].num_reqs === 0);
  expect((await bench.ask('GET', '/get_load')).json[0].num_tokens).toBe(0);
  const lines = readJournal(bench.journal);
  expect(lines.filter(({ event }) => event === 'received')).toHaveLength(50);
  expect(lines.filter((line) => line.event === 'aborted' && line.because === 'client-gone')).toHaveLength(50);
  expect(lines.filter(({ event }) => event === 'answered')).toHaveLength(0);
});

test('0.93 answers small prompts for ever, and dies in the first batch that its headroom does not hold', async () => {
  const bench = await startServing({ scenario: STORY, flags: at('0.93', 'bf16'), clockRate: 100 });
  for (let nth = 0; nth < 5; nth++) expect((await bench.ask('POST', '/generate', { text: prompt(nth, 500) })).status).toBe(200);
  const asked = bench.ask('POST', '/generate', { text: prompt(99, 20_000) }).catch(() => 'gone');
  await bench.exited;
  expect(await asked).toBe('gone');
  expect(bench.log()).toContain('CUDA out of memory');
  const { state, cause, phase } = verdictOf(bench.log());
  expect({ state, phase }).toEqual({ state: 'crashed', phase: 'serving' });
  expect(cause).toMatch(/oom|memory/);
  const [last] = readJournal(bench.journal).slice(-1);
  expect(last?.event).toBe('received'); // it died with the request in flight
  const safe = await startServing({ scenario: STORY, flags: at('0.88', 'bf16'), clockRate: 100 });
  expect((await safe.ask('POST', '/generate', { text: prompt(99, 20_000) })).status).toBe(200);
});

test('too long for the pool is refused in its own words, and an answer is cut at what is left', async () => {
  const bench = await startServing({
    scenario: { ...STORY, answerTokens: { kind: 'fixed', tokens: 9000 } },
    flags: at('0.88', 'bf16', '--max-total-tokens', '5000'),
    clockRate: 400,
  });
  const long = await bench.ask('POST', '/generate', { text: prompt(1, 4994) });
  expect(long.status).toBe(400);
  expect(long.json.error.message).toBe(
    'Input length (4994 tokens) exceeds the maximum allowed length (4994 tokens). Use a shorter input or enable --allow-auto-truncate.',
  );
  const fits = await bench.ask('POST', '/generate', { text: prompt(1, 4000), sampling_params: { max_new_tokens: 8000 } });
  expect(fits.json.meta_info).toMatchObject({ finish_reason: { type: 'length' }, prompt_tokens: 4000, completion_tokens: 998 });
});

test('the journal proves what was answered, by hashes', async () => {
  const bench = await startServing({ scenario: { ...STORY }, flags: at('0.88', 'bf16'), clockRate: 100 });
  const { json } = await bench.ask('POST', '/generate', {
    text: 'hello',
    sampling_params: { max_new_tokens: 50, sampling_seed: 3 },
  });
  const [received, answered] = readJournal(bench.journal);
  expect(received).toMatchObject({ event: 'received', path: '/generate', hash: sha256('"hello"'), seed: 3 });
  expect(answered).toMatchObject({
    event: 'answered',
    finish: json.meta_info.finish_reason.type,
    outputIds: { count: json.output_ids.length, sha256: sha256(JSON.stringify(json.output_ids)) },
    textSha256: sha256(json.text),
  });
});
