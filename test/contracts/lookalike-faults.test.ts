/** The lookalike engine as a program: each fault, as a client sees it and as the journal tells it. */
import { expect, test } from 'vitest';
import { type Answer, answeredLines, ask, CHAT, type ReplyBody, startLookalike, until } from '../support/lookalike-bench.ts';
import { readJournal } from '../support/read-journal.ts';

const VOCABULARY = 261;

type R = ReplyBody;
type Eight = [R, R, R, R, R, R, R, R];

test('faults that answer wrongly say so in the journal', async () => {
  const faults = [
    { when: { request: 1 }, do: 'garbage' },
    { when: { request: 2 }, do: 'wrong-count' },
    { when: { request: 3 }, do: 'bad-ids' },
    { when: { request: 4 }, do: 'bad-ids', id: -1 },
    { when: { request: 5 }, do: 'empty' },
    { when: { request: 6 }, do: 'empty', form: 'only-stop' },
    { when: { request: 7 }, do: 'empty', form: 'no-choices' },
  ];
  const bench = await startLookalike({ scenario: { faults } });
  const replies: Answer[] = [];
  for (let n = 1; n <= 8; n++) replies.push(await bench.post(CHAT, ask(`prompt ${n}`)));
  expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(200));
  const [garbage, wrongCount, beyond, negative, none, onlyStop, noChoices, healthy] = replies.map(({ json }) => json) as Eight;
  expect(garbage).toBeUndefined();
  expect(wrongCount.usage.completion_tokens).toBe(wrongCount.choices[0].token_ids.length + 1);
  expect(Math.max(...beyond.choices[0].token_ids)).toBe(VOCABULARY);
  expect(Math.min(...negative.choices[0].token_ids)).toBe(-1);
  expect(none.choices[0].token_ids).toEqual([]);
  expect(onlyStop.choices[0].token_ids).toEqual([0]);
  expect(noChoices.choices).toEqual([]);
  expect(healthy.choices[0].token_ids.length).toBe(healthy.usage.completion_tokens);
  const lines = answeredLines(bench);
  expect(lines.map(({ fault }) => fault)).toEqual([
    'garbage',
    'wrong-count',
    'bad-ids',
    'bad-ids',
    'empty',
    'empty',
    'empty',
    '',
  ]);
  expect(lines.map(({ outputIds }) => outputIds === undefined)).toEqual([true, false, false, false, false, false, true, false]);
});

test('an answer can be told, and is cut at the cap like any other', async () => {
  const text = 'on and on ';
  const faults = [{ when: { contains: 'prompt' }, do: 'say', text: text.repeat(4), times: 2 }];
  const bench = await startLookalike({ scenario: { faults } });
  const answers = [ask('prompt 1'), { ...ask('prompt 2'), max_tokens: 15 }, ask('prompt 3')];
  const said: unknown[] = [];
  for (const asked of answers) said.push((await bench.post(CHAT, asked)).json);
  const [whole, cut, free] = (said as [R, R, R]).map(({ choices }) => choices[0]);
  expect(whole).toMatchObject({ message: { content: text.repeat(4) }, finish_reason: 'stop' });
  expect(whole?.token_ids).toEqual([...Buffer.from(text.repeat(4))].map((byte) => byte + 3).concat(0));
  expect(cut).toMatchObject({ message: { content: 'on and on on an' }, finish_reason: 'length' });
  expect(cut?.token_ids.length).toBe(15);
  expect((free as { message?: { content?: string } }).message?.content).not.toContain(text);
  expect(answeredLines(bench).map(({ fault }) => fault)).toEqual(['say', 'say', '']);
});

test('statuses come on cue: a burst, a poison prompt, a 429 that says when, every nth', async () => {
  const faults = [
    { when: { contains: 'poison' }, do: 'status', status: 400 },
    { when: { fromRequest: 2, toRequest: 3 }, do: 'status', status: 503, body: 'busy' },
    { when: { request: 4 }, do: 'status', status: 429, retryAfterSeconds: 2 },
    { when: { everyNth: 6 }, do: 'status', status: 500, body: { error: 'engine dead' }, times: 1 },
  ];
  const bench = await startLookalike({ scenario: { faults } });
  const replies: Answer[] = [];
  for (let n = 1; n <= 6; n++) replies.push(await bench.post(CHAT, ask(n === 5 ? 'a poison prompt' : 'fine')));
  expect(replies.map(({ status }) => status)).toEqual([200, 503, 503, 429, 400, 500]);
  expect(replies[1]?.text).toBe('busy');
  expect(replies[3]?.retryAfter).toBe('2');
  expect(replies[4]?.json.error.code).toBe(400);
  expect(replies[5]?.json).toEqual({ error: 'engine dead' });
  expect(answeredLines(bench).map(({ status }) => status)).toEqual([200, 503, 503, 429, 400, 500]);
  for (let n = 7; n <= 12; n++) expect((await bench.post(CHAT, ask('fine'))).status).toBe(200);
});

test('cut, reset and hang end without an answer and with an aborted line', async () => {
  const faults = (['cut', 'reset', 'hang'] as const).map((what, index) => ({ when: { request: index + 1 }, do: what }));
  const bench = await startLookalike({ scenario: { faults } });
  await expect(bench.post(CHAT, ask('cut'))).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
  await expect(bench.post(CHAT, ask('reset'))).rejects.toMatchObject({ code: 'ECONNRESET' });
  await expect(bench.post(CHAT, ask('hang'), AbortSignal.timeout(200))).rejects.toThrow();
  await until(() => readJournal(bench.journal).length === 6);
  const ends = readJournal(bench.journal).flatMap((line) => (line.event === 'aborted' ? [line.because] : []));
  expect(ends).toEqual(['cut', 'reset', 'client-gone']);
  expect((await bench.post(CHAT, ask('after'))).status).toBe(200);
  const stats = await bench.stats();
  expect(stats).toEqual({ received: 4, answered: 1, aborted: 3, inFlight: 0, maxInFlight: 1, struck: 3 });
});

test('die kills the program, and its next life appends to the same journal', async () => {
  const bench = await startLookalike({ scenario: { faults: [{ when: { request: 2 }, do: 'die' }] } });
  expect((await bench.post(CHAT, ask('one'))).status).toBe(200);
  await expect(bench.post(CHAT, ask('two'))).rejects.toThrow();
  expect(await bench.engine.exited).toEqual({ code: null, signal: 'SIGKILL' });
  const next = await startLookalike({ journal: bench.journal });
  expect((await next.post(CHAT, ask('two'))).status).toBe(200);
  const lines = readJournal(bench.journal);
  expect(lines.map(({ event, request }) => `${event} ${request}`)).toEqual([
    'received 1',
    'answered 1',
    'received 2',
    'received 1',
    'answered 1',
  ]);
  expect(new Set(lines.map(({ life }) => life)).size).toBe(2);
});

test('die by the clock needs no request', async () => {
  const { engine } = await startLookalike({ scenario: { faults: [{ when: { afterMs: 100 }, do: 'die', exitCode: 9 }] } });
  expect(await engine.exited).toEqual({ code: 9, signal: null });
});

test('health can be sick for a while, and can lie while nothing is answered', async () => {
  const { get, post } = await startLookalike({ scenario: { faults: [{ do: 'health-503', times: 2 }] } });
  expect([await get('/health'), await get('/health'), await get('/health')].map(({ status }) => status)).toEqual([503, 503, 200]);
  expect((await post('/_lookalike/fault', { do: 'health-lies' })).status).toBe(200);
  await expect(post(CHAT, ask('stuck'), AbortSignal.timeout(200))).rejects.toThrow();
  expect((await get('/health')).status).toBe(200);
});

test('a fault can be added and all forgotten while the program runs', async () => {
  const { post, pool } = await startLookalike();
  expect((await post('/_lookalike/fault', { do: 'status', status: 502 })).status).toBe(200);
  expect((await post(CHAT, ask('x'))).status).toBe(502);
  await pool.request({ method: 'DELETE', path: '/_lookalike/fault' }).then(({ body }) => body.dump());
  expect((await post(CHAT, ask('x'))).status).toBe(200);
  const misspelt = await post('/_lookalike/fault', { do: 'hang', wen: {} });
  expect(misspelt).toMatchObject({ status: 400, json: { error: { message: expect.stringContaining('wen') } } });
});
