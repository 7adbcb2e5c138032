/** The embedded engine as its clients see it: the built program, over HTTP, on a tiny model with random weights. */
import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dialectOf } from '../../src/engine/dialects.ts';
import { EMBEDDED_PROGRAM, type StartedEngine, startEmbedded } from '../support/start-embedded.ts';

const CONTEXT = 512;
const user = (content: string) => ({ role: 'user', content });
const chat = (content: string, more: Readonly<Record<string, unknown>> = {}) => ({
  model: 'tiny',
  messages: [user(content)],
  max_tokens: 40,
  temperature: 0,
  return_token_ids: true,
  ...more,
});

describe('embedded engine', () => {
  let engine: StartedEngine;
  let stopIds: readonly number[];
  beforeAll(async () => {
    engine = await startEmbedded(['--sequences', '4', '--context', String(CONTEXT)]);
    stopIds = (await engine.get('/server_info')).body.stop_token_ids;
  });
  afterAll(() => engine.stop());

  /** The ids that the text stands for. */
  const visible = (ids: readonly number[]) => (stopIds.includes(ids.at(-1) ?? -1) ? ids.slice(0, -1) : ids);

  test('health is 503 while it loads, then 200, and its body is always empty', () => {
    expect(engine.healthSeen[0]).toEqual({ status: 503, body: '' });
    expect(engine.healthSeen.at(-1)).toEqual({ status: 200, body: '' });
  });

  test('it says what it is, in the words of SGLang and vLLM', async () => {
    expect((await engine.get('/server_info')).body).toMatchObject({
      served_model_name: 'tiny',
      kv_cache_dtype: 'float16',
      context_length: CONTEXT,
      max_total_num_tokens: 4 * CONTEXT,
      max_running_requests: 4,
      weights: 'F32',
      vocab_size: 277,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      template_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      tokenizer: false,
    });
    expect((await engine.get('/v1/models')).body.data).toMatchObject([{ id: 'tiny', max_model_len: CONTEXT }]);
    const tokenizer = (await engine.get('/tokenizer')).body;
    expect(tokenizer).toMatchObject({ model: 'gpt2', pre: 'qwen2', add_bos: false });
    expect(tokenizer.tokens).toHaveLength(277);
    expect(tokenizer.token_types).toHaveLength(277);
    expect(tokenizer.tokens[tokenizer.eos_token_id]).toBe('<|im_end|>');
  });

  test('the ids of a chat are exact: counts, prompt and text agree with them', async () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const { status, body } = await engine.post(
        '/v1/chat/completions',
        chat('hello wörld 🎉', { temperature: 1.2, seed, max_tokens: 200 }),
      );
      expect(status).toBe(200);
      const [choice] = body.choices;
      const { token_ids: ids } = choice;
      const tokenized = await engine.post('/tokenize', { messages: [user('hello wörld 🎉')] });
      expect(body.prompt_token_ids).toEqual(tokenized.body.tokens);
      expect(body.usage).toMatchObject({
        prompt_tokens: tokenized.body.count,
        completion_tokens: ids.length,
        total_tokens: tokenized.body.count + ids.length,
      });
      expect((await engine.post('/detokenize', { tokens: visible(ids) })).body.prompt).toBe(choice.message.content);
      const isEnded = stopIds.includes(ids.at(-1));
      expect(choice.finish_reason).toBe(isEnded ? 'stop' : 'length');
      expect(isEnded || ids.length === 200).toBe(true);
    }
  });

  test('its counters move with what it answers', async () => {
    const metrics = dialectOf('embedded').metrics;
    const read = async () => {
      const body = JSON.stringify((await engine.get(metrics?.request.path ?? '')).body);
      return metrics?.parse({ status: 200, body });
    };
    const before = await read();
    const answer = await engine.post('/v1/chat/completions', chat('count'));
    const after = await read();
    expect((after?.generatedTokens ?? 0) - (before?.generatedTokens ?? 0)).toBe(answer.body.usage.completion_tokens);
    expect(after).toMatchObject({ running: 0, waiting: 0 });
  });

  test('a completion is what /generate gives for the same ids, in vLLM’s shape', async () => {
    const { body: tokenized } = await engine.post('/tokenize', { messages: [user('hello')] });
    const ids: number[] = tokenized.tokens;
    const asked = { prompt: ids, max_tokens: 12, temperature: 0, return_token_ids: true };
    const { status, body } = await engine.post('/v1/completions', asked);
    const sampling = { max_new_tokens: 12, temperature: 0 };
    const { body: same } = await engine.post('/generate', { input_ids: ids, sampling_params: sampling });
    expect([status, body.object]).toEqual([200, 'text_completion']);
    const { token_ids: outputIds, prompt_token_ids: promptIds, text } = body.choices[0];
    expect([outputIds, promptIds, text]).toEqual([same.output_ids, ids, same.text]);
    expect(body.usage).toMatchObject({ prompt_tokens: ids.length, completion_tokens: outputIds.length });
    const bare = await engine.post('/v1/completions', { prompt: 'hello', max_tokens: 2 });
    expect([bare.body.choices[0].token_ids, bare.body.usage.completion_tokens <= 2]).toEqual([null, true]);
  });

  test('a seed gives the same answer again, another seed another', async () => {
    const ids = async (seed: number) => {
      const { body } = await engine.post('/generate', {
        text: 'the',
        sampling_params: { max_new_tokens: 24, sampling_seed: seed, ignore_eos: true },
      });
      return body.output_ids;
    };
    expect(await ids(11)).toEqual(await ids(11));
    expect(await ids(11)).not.toEqual(await ids(12));
  });

  test('greedy answers are the same in a batch as alone, also when more ask than there are sequences', async () => {
    const prompts = Array.from({ length: 10 }, (_, number) => chat(`prompt ${number} of ten`));
    const alone: unknown[] = [];
    for (const prompt of prompts) alone.push((await engine.post('/v1/chat/completions', prompt)).body.choices[0].token_ids);
    const batched = await Promise.all(prompts.map((prompt) => engine.post('/v1/chat/completions', prompt)));
    expect(batched.map((reply) => reply.body.choices[0].token_ids)).toEqual(alone);
  });

  test('a second turn reuses what its sequence holds, and says how much', async () => {
    const first = await engine.post('/v1/chat/completions', chat('tell me of the unique eagle 4711', { max_tokens: 30 }));
    const { message, token_ids: ids } = first.body.choices[0];
    const messages = [user('tell me of the unique eagle 4711'), { role: 'assistant', content: message.content }, user('more')];
    const second = await engine.post('/v1/chat/completions', chat('', { messages }));
    const cached = second.body.usage.prompt_tokens_details.cached_tokens;
    const shared = [...first.body.prompt_token_ids, ...ids].findIndex((id, at) => id !== second.body.prompt_token_ids[at]);
    expect(cached).toBeGreaterThanOrEqual(first.body.usage.prompt_tokens);
    // what was sampled last was never evaluated, so it cannot be reused
    expect(cached).toBe(Math.min(shared < 0 ? Infinity : shared, first.body.usage.total_tokens - 1));
  });

  test('generate speaks the other shape and takes ids', async () => {
    const prompt = (await engine.post('/tokenize', { prompt: 'hello the' })).body.tokens;
    const { body } = await engine.post('/generate', {
      input_ids: prompt,
      sampling_params: { max_new_tokens: 10, temperature: 0, ignore_eos: true },
    });
    expect(body.output_ids).toHaveLength(10);
    expect(body.meta_info).toMatchObject({
      finish_reason: { type: 'length', length: 10 },
      prompt_tokens: prompt.length,
      completion_tokens: 10,
    });
    expect((await engine.post('/detokenize', { tokens: body.output_ids })).body.prompt).toBe(body.text);
  });

  test('a stop string ends the answer and is not in the text, its ids are kept', async () => {
    const free = (await engine.post('/v1/chat/completions', chat('stop'))).body.choices[0];
    const stop = Array.from(String(free.message.content)).find((character) => character !== '\ufffd') ?? '';
    const stopped = (await engine.post('/v1/chat/completions', chat('stop', { stop }))).body.choices[0];
    expect(stopped).toMatchObject({ finish_reason: 'stop', stop_reason: stop });
    expect(stopped.message.content).toBe(String(free.message.content).split(stop)[0]);
    expect(stopped.token_ids).toEqual(free.token_ids.slice(0, stopped.token_ids.length));
  });

  test('what does not fit is refused with its numbers, and what just fits is answered', async () => {
    const { body: sized } = await engine.post('/tokenize', { messages: [user('fit')] });
    const room = CONTEXT - sized.count;
    const over = await engine.post('/v1/chat/completions', chat('fit', { max_tokens: room + 1 }));
    expect(over.status).toBe(400);
    expect(over.body.error).toMatchObject({ type: 'BadRequestError', code: 400 });
    expect(over.body.error.message).toContain(`maximum context length is ${CONTEXT} tokens`);
    expect(over.body.error.message).toContain(
      `requested ${CONTEXT + 1} tokens (${sized.count} in the messages, ${room + 1} in the completion)`,
    );
    const fits = await engine.post('/v1/chat/completions', chat('fit', { max_tokens: room, ignore_eos: true }));
    expect(fits.body.usage.total_tokens).toBe(CONTEXT);
    expect((await engine.post('/v1/chat/completions', chat('x '.repeat(40_000)))).status).toBe(400);
    const long = (await engine.post('/tokenize', { prompt: 'x'.repeat(CONTEXT - 1) })).body.tokens;
    expect((await engine.post('/generate', { input_ids: long, sampling_params: { max_new_tokens: 1 } })).status).toBe(200);
    expect((await engine.post('/generate', { input_ids: [...long, 1], sampling_params: { max_new_tokens: 1 } })).status).toBe(
      400,
    );
  });

  test.each([
    ['not JSON', '/v1/chat/completions', '{"messages": [', 400],
    ['an array', '/v1/chat/completions', '[]', 400],
    ['no messages', '/v1/chat/completions', {}, 400],
    ['a role it does not know', '/v1/chat/completions', { messages: [{ role: 'wizard', content: 'x' }] }, 400],
    ['content that is a number', '/v1/chat/completions', { messages: [{ role: 'user', content: 7 }] }, 400],
    ['streaming', '/v1/chat/completions', chat('x', { stream: true }), 400],
    ['two answers', '/v1/chat/completions', chat('x', { n: 2 }), 400],
    ['a penalty it does not have', '/v1/chat/completions', chat('x', { repetition_penalty: 1.1 }), 400],
    ['a grammar it does not have', '/v1/chat/completions', chat('x', { response_format: { type: 'json_object' } }), 400],
    ['a bias it does not have', '/generate', { text: 'x', sampling_params: { logit_bias: { 1: 5 } } }, 400],
    ['no tokens at all', '/v1/chat/completions', chat('x', { max_tokens: 0 }), 400],
    ['a seed out of range', '/v1/chat/completions', chat('x', { seed: -1 }), 400],
    ['another model', '/v1/chat/completions', chat('x', { model: 'other' }), 404],
    ['an id out of the vocabulary', '/generate', { input_ids: [277] }, 400],
    ['text and ids', '/generate', { text: 'x', input_ids: [1] }, 400],
    ['an empty prompt', '/generate', { text: '' }, 400],
    ['ids that are text', '/detokenize', { tokens: ['a'] }, 400],
    ['nothing to tokenize', '/tokenize', {}, 400],
    ['a completion without a prompt', '/v1/completions', {}, 400],
    ['ids beyond the vocabulary in a completion', '/v1/completions', { prompt: [1, 999_999] }, 400],
    ['a path it does not have', '/v1/embeddings', {}, 404],
  ])('it refuses %s in the error shape, without a stack trace', async (_, path, body, status) => {
    const reply = await engine.post(path, body);
    expect(reply.status).toBe(status);
    expect(reply.body.error).toMatchObject({ message: expect.any(String), code: status });
    expect(JSON.stringify(reply.body)).not.toMatch(/\bat .*\.js:\d+/);
    expect((await engine.post('/v1/chat/completions', chat('still here', { max_tokens: 2 }))).status).toBe(200);
  });

  test('a client that goes away frees its sequence, in the middle of an answer and in the queue', async () => {
    const gone = new AbortController();
    const before = (await engine.get('/server_info')).body.generated_tokens;
    const abandoned = Array.from({ length: 9 }, (_, number) =>
      engine
        .post('/v1/chat/completions', chat(`gone ${number}`, { max_tokens: 400, ignore_eos: true }), gone.signal)
        .catch(() => 'gone'),
    );
    while ((await engine.get('/server_info')).body.num_queue_reqs < 5) await delay(2);
    gone.abort();
    expect(new Set(await Promise.all(abandoned))).toEqual(new Set(['gone']));
    let busy = 1;
    for (let look = 0; look < 200 && busy > 0; look++) {
      const { num_running_reqs: running, num_queue_reqs: queued } = (await engine.get('/server_info')).body;
      busy = running + queued;
      await delay(10);
    }
    expect(busy).toBe(0);
    // nine answers of 400 tokens were asked for; the five in the queue never began, the four others were broken off
    expect((await engine.get('/server_info')).body.generated_tokens - before).toBeLessThan(4 * 400);
    expect((await engine.post('/v1/chat/completions', chat('next'))).status).toBe(200);
  });
});

test('a quantised KV cache works and is named', async () => {
  const engine = await startEmbedded(['--kv-type', 'q8_0', '--sequences', '2', '--context', '256']);
  try {
    expect((await engine.get('/server_info')).body.kv_cache_dtype).toBe('q8_0');
    const { body } = await engine.post('/v1/chat/completions', chat('hello'));
    expect(body.usage.completion_tokens).toBe(body.choices[0].token_ids.length);
  } finally {
    await engine.stop();
  }
});

test.each(['idle', 'busy'])('it ends within a second when its stdin closes (%s)', async (state) => {
  const engine = await startEmbedded(['--lifeline', '--context', '4096', '--sequences', '1']);
  const answer =
    state === 'busy'
      ? engine.post('/v1/chat/completions', chat('long', { max_tokens: 3_900, ignore_eos: true })).catch(() => undefined)
      : undefined;
  if (answer !== undefined) while ((await engine.get('/server_info')).body.num_running_reqs === 0) await delay(5);
  const ended = new Promise<number | null>((resolve) => engine.process.once('exit', (code) => resolve(code)));
  engine.process.stdin?.end();
  expect(await Promise.race([ended, delay(1_000, 'still there')])).toBe(0);
  await answer;
  await engine.stop();
});

test.each([
  [['--model', 'x.gguf', '--nonsense'], 2, '--model PATH.gguf'],
  [[], 2, '--model'],
  [['--model', 'x.gguf', '--sequences', 'many'], 2, '--sequences many is not a whole number from 1 to 256'],
  [['--model', 'x.gguf', '--kv-type', 'fp8'], 2, '--kv-type f16 or --kv-type q8_0'],
  [['--model', '/nowhere/x.gguf'], 3, '/nowhere/x.gguf'],
])('wrong flags %j end it with %i and a message', (flags, code, message) => {
  const ended = spawnSync(process.execPath, [EMBEDDED_PROGRAM, ...flags], { encoding: 'utf8', timeout: 20_000 });
  expect(ended.status).toBe(code);
  expect(ended.stderr).toContain(message);
});
