/** A served vLLM on a clock that the test moves: its line of ten seconds, its metrics, its paths, and a hang that health does not see. */
import { expect, test } from 'vitest';
import { kimiLife } from '../../../../test/support/played-life.ts';
import { readSamples } from '../../../engine/prometheus.ts';
import { parseVllmMessage } from '../../../engine/vllm/log-lines.ts';
import { vllm } from '../../../engine/vllm/vllm.ts';
import { answerHealth } from './health.ts';
import { renderMetrics } from './metrics.ts';
import { openServing, type Serving } from './serving.ts';

const FLAGS = ['--tensor-parallel-size', '8', '--gpu-memory-utilization', '0.93', '--max-model-len', '65536'];
const SECOND = 1000;
const start = () => {
  const life = kimiLife(FLAGS, { engine: 'vllm', version: '0.16.0' });
  return { life, serving: openServing(life, {}) };
};
const submit = (serving: Serving, nth: number, promptTokens: number, answerTokens: number) =>
  serving.submit(
    { id: String(nth), rid: undefined },
    Array.from({ length: promptTokens }, (_, at) => (at * 13 + nth * 7) % 251),
    answerTokens,
    answerTokens,
  );
const figureOf = (text: string, name: string) => readSamples(text, `vllm:${name}`)[0]?.value;

test('prints a line each ten seconds while it has work, one of zeros after, and then nothing', async () => {
  const { life, serving } = start();
  for (let nth = 0; nth < 20; nth++) void submit(serving, nth, 500, 1000);
  await life.clock.playTo(600 * SECOND);
  const readings = life.lines.map(({ text }) => parseVllmMessage(text));
  expect(readings.length).toBeGreaterThan(3);
  expect(readings.length).toBeLessThan(60);
  expect(readings[0]).toMatchObject({ kind: 'decode', running: 20, queued: 0 });
  expect(readings.at(-1)).toMatchObject({ kind: 'decode', running: 0, queued: 0, generated: 0, prompted: 0 });
  expect(readings.filter((one) => one?.kind === 'decode' && one.generated === 0)).toHaveLength(1);
  expect(life.lines.map(({ at }) => at / SECOND).slice(0, 3)).toEqual([10, 20, 30]);
  const made = readings.reduce((sum, one) => sum + (one?.kind === 'decode' ? one.generated * 10 : 0), 0);
  expect(Math.abs(made - 20_000)).toBeLessThan(50); // printed to a tenth
});

test('counts as it goes, and its metrics tell pool and type of the cache', async () => {
  const { life, serving } = start();
  void submit(serving, 1, 500, 2000);
  await life.clock.playTo(5 * SECOND);
  const early = renderMetrics(serving, 'kimi');
  await life.clock.playTo(15 * SECOND);
  const later = renderMetrics(serving, 'kimi');
  expect(figureOf(early, 'prompt_tokens_total')).toBe(500);
  expect(figureOf(later, 'generation_tokens_total')).toBeGreaterThan((figureOf(early, 'generation_tokens_total') ?? 0) + 100);
  expect(figureOf(later, 'num_requests_running')).toBe(1);
  expect(figureOf(later, 'kv_cache_usage_perc')).toBeGreaterThan(0);
  const replies = [
    { status: 200, body: JSON.stringify({ data: [{ id: 'kimi', max_model_len: 65_536 }] }) },
    { status: 200, body: JSON.stringify({ version: '0.16.0' }) },
    { status: 200, body: later },
  ];
  const blocks = Math.floor(serving.scheduler.server.poolTokens / life.launch.pageTokens);
  expect(vllm.parseFacts(replies, '')).toMatchObject({ poolTokens: blocks * life.launch.pageTokens, contextTokens: 65_536 });
});

test('a hang keeps the counters where they are, and health says 200', async () => {
  const { life, serving } = start();
  void submit(serving, 1, 500, 9000);
  await life.clock.playTo(12 * SECOND);
  serving.fail({ do: 'scheduler-hangs', when: {}, health: 'real' });
  const before = renderMetrics(serving, 'kimi');
  await life.clock.playTo(60 * SECOND);
  expect(await answerHealth(serving)).toBe(200);
  expect(renderMetrics(serving, 'kimi')).toBe(before);
  // Its front end goes on to say what it last knew.
  const last = life.lines.slice(-3).map(({ text }) => parseVllmMessage(text));
  for (const one of last) expect(one).toMatchObject({ kind: 'decode', running: 1, generated: 0, prompted: 0 });
});

test('a full pool preempts, and nobody is lost', async () => {
  const life = kimiLife([...FLAGS, '--kv-cache-memory-bytes', String(70_272 * 66_000)], { engine: 'vllm', version: '0.16.0' });
  const serving = openServing(life, {});
  const ended = Promise.all(Array.from({ length: 30 }, (_, nth) => submit(serving, nth, 1000, 4000)));
  await life.clock.playTo(3600 * SECOND);
  for (const { ending, produced } of await ended) expect({ ending, produced }).toEqual({ ending: 'finished', produced: 4000 });
  expect(figureOf(renderMetrics(serving, 'kimi'), 'num_preemptions_total')).toBeGreaterThan(0);
  expect(life.lines.some(({ text }) => /Preemptions: \d+/.test(text))).toBe(true);
});
