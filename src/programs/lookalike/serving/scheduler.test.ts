/** The scheduler in real time, on a clock that the test moves: the story's load, its lines, its figures. */
import { expect, test } from 'vitest';
import { kimiLife, type PlayedLife, STORY_088, STORY_090 } from '../../../../test/support/played-life.ts';
import { readSamples } from '../../../engine/prometheus.ts';
import { parseSglangMessage } from '../../../engine/sglang/log-lines.ts';
import { drawRequests, sigmaOfCv } from '../../../twin/lengths.ts';
import { seededRandom } from '../../../twin/seeded-random.ts';
import { answerHealth } from './health.ts';
import { renderMetrics } from './metrics.ts';
import { openServing, type Serving } from './serving.ts';

const MINUTE = 60_000;
/** Prompts of 700 and answers of 4,313 as spread as their mean, cap 16,384: what explains 34.5 running at 0.88 (docs/twin.md). */
const LOAD = drawRequests(
  {
    ...{ count: 3000, prompt: { kind: 'lognormal', mean: 700, sigma: sigmaOfCv(1), most: 8000 }, maxNewTokens: 16_384 },
    ...{ output: { kind: 'lognormal', mean: 4313, sigma: sigmaOfCv(1), most: 16_384 }, commonPrefixTokens: 0 },
  },
  seededRandom(7),
);

/** 150 in flight: the next is sent when one is answered. Prompts that share nothing. */
function keepInFlight(serving: Serving, inFlight: number) {
  let [sent, answered] = [0, 0];
  const send = (): void => {
    const request = LOAD[sent % LOAD.length];
    if (request === undefined) return;
    const nth = sent++;
    const ids = Array.from({ length: request.promptTokens }, (_, at) => (at === 0 ? nth : (nth * 31 + at) % 251));
    void serving.submit({ id: String(nth), rid: undefined }, ids, request.maxNewTokens, request.outputTokens).then(() => {
      answered += 1;
      send();
    });
  };
  for (let nth = 0; nth < inFlight; nth++) send();
  return { answered: () => answered };
}

const readings = (life: PlayedLife, from = 0) =>
  life.lines
    .filter(({ at }) => at >= from)
    .flatMap(({ text }) => parseSglangMessage(text) ?? [])
    .flatMap((event) => (event.kind === 'decode' ? [event] : []));

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

test('0.88 bf16 with 150 in flight runs 33 to 38 of them, and the rest waits', { timeout: 120_000 }, async () => {
  const life = kimiLife(STORY_088);
  const serving = openServing(life, { 'enable-metrics': true });
  const load = keepInFlight(serving, 150);
  await life.clock.playTo(90 * MINUTE);
  const steady = readings(life, 30 * MINUTE);
  expect(steady.length).toBeGreaterThan(300);
  const running = median(steady.map((one) => one.running));
  expect(running).toBeGreaterThanOrEqual(33);
  expect(running).toBeLessThanOrEqual(38);
  expect(median(steady.map(({ running: now, queued }) => now + queued))).toBe(150);
  expect(load.answered()).toBeGreaterThan(100);
  // The gauges are those of the last line, and no line says more than the pool has.
  const last = readings(life).at(-1);
  const metrics = renderMetrics(serving, 'kimi');
  const gauge = (name: string) => readSamples(metrics, `sglang:${name}`)[0]?.value;
  expect(Math.max(...steady.map(({ usage }) => usage))).toBeLessThanOrEqual(1);
  expect(gauge('num_queue_reqs')).toBeGreaterThan(100);
  expect(Math.abs((gauge('num_queue_reqs') ?? 0) - (last?.queued ?? 0))).toBeLessThanOrEqual(3);
  expect(gauge('max_total_num_tokens')).toBe(life.prediction.poolTokens);
});

test('0.90 fp8 runs many more of the same', { timeout: 120_000 }, async () => {
  const life = kimiLife(STORY_090);
  keepInFlight(openServing(life, {}), 150);
  await life.clock.playTo(20 * MINUTE);
  const early = readings(life, 2 * MINUTE).filter((_, nth) => nth < 60);
  expect(median(early.map((one) => one.running))).toBeGreaterThan(110);
  expect(median(readings(life, 2 * MINUTE).map((one) => one.running))).toBeGreaterThan(65);
});

test('wakes once for each thing to tell, and never between', async () => {
  const life = kimiLife(STORY_088);
  const serving = openServing(life, {});
  void serving.submit({ id: 'a', rid: undefined }, [1, 2, 3], 4000, 4000);
  await life.clock.playTo(10 * MINUTE);
  // 4,000 steps: 100 lines, one prefill, one ending.
  expect(readings(life)).toHaveLength(99);
  expect(life.clock.wakes()).toBeLessThan(110);
});

test('an abort frees the pool at once', async () => {
  const life = kimiLife(STORY_088);
  const { scheduler } = openServing(life, {});
  const ids = (nth: number) => Array.from({ length: 3000 }, (_, at) => (at + nth) % 251);
  const gone = scheduler.submit('gone', ids(1), 8000, 8000);
  void scheduler.submit('stays', ids(2), 8000, 8000);
  await life.clock.playTo(20_000);
  const before = scheduler.now();
  expect(before).toMatchObject({ running: 2, queued: 0 });
  scheduler.abort('gone');
  await life.clock.playTo(21_000);
  const ended = await gone;
  expect(ended).toMatchObject({ ending: 'aborted' });
  expect(ended.produced).toBeGreaterThan(50);
  expect(scheduler.now().running).toBe(1);
  expect(scheduler.now().usedTokens).toBeLessThan(before.usedTokens - 2900);
});

test('a batch that has no room ends the launch before it is computed', async () => {
  const asked: number[] = [];
  const life = kimiLife(STORY_088, { canPrefill: (newTokens) => asked.push(newTokens) > 0 && newTokens < 8192 });
  const { scheduler } = openServing(life, {});
  void scheduler.submit('small', [1, 2, 3], 10, 10);
  await life.clock.playTo(5000);
  expect(asked).toEqual([3]);
  const large = Array.from({ length: 20_000 }, (_, at) => at % 251);
  await expect(scheduler.submit('large', large, 10, 10)).rejects.toThrow('out of memory in a prefill of 8192 tokens');
});

test('the next turn finds the whole conversation in the cache, and a stranger its common beginning', async () => {
  const life = kimiLife(STORY_088);
  const { scheduler } = openServing(life, {});
  const prompt = Array.from({ length: 300 }, (_, at) => (at * 7) % 251);
  const answer = Array.from({ length: 100 }, (_, at) => (at * 11) % 251);
  const first = scheduler.submit('first', prompt, 100, 100);
  await life.clock.playTo(20_000);
  scheduler.remember('first', await first, [...prompt, ...answer]);
  const second = scheduler.submit('second', [...prompt, ...answer, 9, 9, 9, 9], 10, 10);
  await life.clock.playTo(30_000);
  expect((await second).cachedTokens).toBe(399); // the last token of an answer has no KV
  const stranger = scheduler.submit('stranger', [...prompt.slice(0, 200), ...answer], 10, 10);
  await life.clock.playTo(40_000);
  expect((await stranger).cachedTokens).toBe(128);
});

test('health: a second while it lives, at work and idle; 503 after twenty in a hang, or a lie', async () => {
  const life = kimiLife(STORY_088);
  const serving = openServing(life, {});
  const ask = async (forMs: number) => {
    const begun = life.clock.elapsed();
    let answeredAt = Number.NaN;
    const answer = answerHealth(serving).then((status) => {
      answeredAt = life.clock.elapsed() - begun;
      return status;
    });
    await life.clock.playTo(begun + forMs);
    return [await answer, answeredAt];
  };
  expect(await ask(2000)).toEqual([200, 1000]);
  expect(life.lines.map(({ text }) => text)).toEqual([
    'Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ',
  ]);
  void serving.submit({ id: 'a', rid: undefined }, [1, 2, 3], 4000, 4000);
  await life.clock.playTo(life.clock.elapsed() + 5000);
  const [status, afterMs] = await ask(5000);
  expect(status).toBe(200);
  expect(afterMs).toBeLessThanOrEqual(3000);
  serving.fail({ do: 'scheduler-hangs', when: {}, health: 'real' });
  const lines = life.lines.length;
  await life.clock.playTo(life.clock.elapsed() + 60_000);
  expect(await ask(30_000)).toEqual([503, 20_000]);
  expect(life.lines.slice(lines).map(({ text }) => text.slice(0, 20))).toEqual(['Health check failed.']);
  serving.fail({ do: 'scheduler-hangs', when: {}, health: 'lies' });
  expect(await ask(0)).toEqual([200, 0]);
});
