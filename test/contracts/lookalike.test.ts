/** The lookalike engine as a program: what it answers, in the shapes of both engines, and what its journal says of it. */
import { expect, test } from 'vitest';
import { ask, CHAT, sha256, startLookalike, user } from '../support/lookalike-bench.ts';
import { readJournal } from '../support/read-journal.ts';

const VOCABULARY = 261;

test('health is 200 with an empty body, and the engine describes itself in both shapes', async () => {
  const { get } = await startLookalike({
    scenario: { serverInfo: { kv_cache_dtype: 'fp8_e4m3' } },
    args: ['--served-model-name', 'm', '--max-model-len', '500'],
  });
  expect(await get('/health')).toEqual({ status: 200, text: '' });
  expect(JSON.parse((await get('/version')).text)).toEqual({ version: '0.11.0-lookalike' });
  expect(JSON.parse((await get('/v1/models')).text).data[0]).toMatchObject({ id: 'm', max_model_len: 500 });
  expect(JSON.parse((await get('/server_info')).text)).toMatchObject({
    model_path: 'm',
    context_length: 500,
    vocab_size: VOCABULARY,
    stop_token_ids: [0],
    kv_cache_dtype: 'fp8_e4m3',
  });
  expect((await get('/nothing')).status).toBe(404);
});

test('a chat answer has the ids of vLLM, agrees with itself, and is the same for the same seed and prompt', async () => {
  const { post } = await startLookalike();
  const first = (await post(CHAT, ask('hello'))).json;
  const choice = first.choices[0];
  expect(first.usage).toMatchObject({ prompt_tokens: first.prompt_token_ids.length, completion_tokens: choice.token_ids.length });
  expect(first.usage.prompt_tokens_details).toEqual({ cached_tokens: 0 });
  expect(choice).toMatchObject({ finish_reason: 'stop', message: { role: 'assistant', reasoning_content: null } });
  expect(choice.token_ids.at(-1)).toBe(0);
  expect((await post('/detokenize', { tokens: choice.token_ids.slice(0, -1) })).json.prompt).toBe(choice.message.content);
  expect((await post(CHAT, ask('hello'))).json.choices[0].token_ids).toEqual(choice.token_ids);
  expect((await post(CHAT, ask('hello', { seed: 8 }))).json.choices[0].token_ids).not.toEqual(choice.token_ids);
  expect((await post(CHAT, ask('hallo'))).json.choices[0].token_ids).not.toEqual(choice.token_ids);
});

test.each([200, 5])(
  'the prompt of the next turn begins with prompt and output of this one (max_tokens %i)',
  async (maxTokens) => {
    const { post } = await startLookalike();
    const first = (await post(CHAT, ask('one', { max_tokens: maxTokens }))).json;
    const reply = first.choices[0];
    expect(reply.finish_reason).toBe(maxTokens === 5 ? 'length' : 'stop');
    const messages = [user('one'), { role: 'assistant', content: reply.message.content }, user('two')];
    const second = (await post(CHAT, { messages, max_tokens: 50 })).json;
    const before = [...first.prompt_token_ids, ...reply.token_ids];
    expect(second.prompt_token_ids.slice(0, before.length)).toEqual(before);
  },
);

test('a capped answer has exactly max_tokens ids, no stop id, and finish length', async () => {
  const { post } = await startLookalike({ scenario: { answerTokens: { kind: 'fixed', tokens: 4000 } } });
  const { choices, usage } = (await post(CHAT, ask('long', { max_tokens: 3000 }))).json;
  expect(choices[0].finish_reason).toBe('length');
  expect(choices[0].token_ids).toHaveLength(3000);
  expect(choices[0].token_ids).not.toContain(0);
  expect(usage.completion_tokens).toBe(3000);
});

test('/generate answers in the shape of SGLang, from text or ids', async () => {
  const { post } = await startLookalike();
  const body = { text: 'abc', sampling_params: { max_new_tokens: 5, sampling_seed: 3 } };
  const reply = (await post('/generate', body)).json;
  expect(reply.output_ids).toHaveLength(5);
  expect(reply.meta_info).toMatchObject({ finish_reason: { type: 'length', length: 5 }, prompt_tokens: 3, completion_tokens: 5 });
  const byIds = (await post('/generate', { ...body, text: undefined, input_ids: [100, 101, 102] })).json;
  expect(byIds).toMatchObject({ text: reply.text, output_ids: reply.output_ids });
  const stopped = (await post('/generate', { text: 'abc' })).json;
  expect(stopped.meta_info.finish_reason).toEqual({ type: 'stop', matched: 0 });
  expect((await post('/generate', { text: ['a', 'b'] })).status).toBe(400);
});

test('text survives tokenize and detokenize, whatever it holds; what spells a special is one', async () => {
  const { post } = await startLookalike();
  const prompt = 'größe 你好 \u{1F600} <|end|> \0 \r\n';
  const { tokens, count, max_model_len } = (await post('/tokenize', { prompt })).json;
  const length = Buffer.byteLength(prompt) - '<|end|>'.length + 1;
  expect({ count, max_model_len }).toEqual({ count: length, max_model_len: 32768 });
  expect((await post('/detokenize', { tokens })).json.prompt).toBe(prompt);
  const asked = (await post('/tokenize', { messages: [user('hello')] })).json;
  expect(asked.tokens).toEqual((await post(CHAT, ask('hello'))).json.prompt_token_ids);
  expect((await post('/detokenize', { tokens: [VOCABULARY] })).status).toBe(400);
});

test('what cannot be answered is refused in the shape of the engine', async () => {
  const { post } = await startLookalike({ args: ['--max-model-len', '100'] });
  const tooMuch = await post(CHAT, ask('hi', { max_tokens: 99 }));
  expect(tooMuch.status).toBe(400);
  expect(tooMuch.json.error).toMatchObject({ type: 'BadRequestError', code: 400, param: null });
  expect(tooMuch.json.error.message).toContain("'max_tokens' or 'max_completion_tokens' is too large: 99.");
  expect((await post(CHAT, ask('x'.repeat(100)))).json.error.message).toContain('maximum context length is 100 tokens');
  expect((await post('/generate', { text: 'x'.repeat(100) })).json.error.message).toContain('longer than the model');
  expect((await post(CHAT, '{"messages": [')).status).toBe(400);
  expect((await post(CHAT, { messages: [] })).status).toBe(400);
  expect((await post(CHAT, ask('hi', { max_tokens: 5, model: 'other' }))).status).toBe(404);
  expect((await post(CHAT, ask('hi', { max_tokens: 5, stream: true }))).status).toBe(400);
});

test('the journal proves every answer with hashes that anyone can make', async () => {
  const bench = await startLookalike();
  const { json } = await bench.post(CHAT, { messages: [{ content: 'hi', role: 'user', name: 'x' }], seed: 11 });
  const [received, answered] = readJournal(bench.journal);
  const hash = sha256(JSON.stringify([{ role: 'user', content: 'hi' }]));
  expect(received).toMatchObject({ event: 'received', request: 1, path: CHAT, hash, seed: 11, pid: bench.engine.pid });
  expect(received).toHaveProperty('input', [{ role: 'user', content: 'hi' }]);
  expect(answered).toMatchObject({
    event: 'answered',
    request: 1,
    hash,
    seed: 11,
    status: 200,
    fault: '',
    finish: 'stop',
    promptIds: { count: json.prompt_token_ids.length, sha256: sha256(JSON.stringify(json.prompt_token_ids)) },
    outputIds: { count: json.choices[0].token_ids.length, sha256: sha256(JSON.stringify(json.choices[0].token_ids)) },
    textSha256: sha256(json.choices[0].message.content),
  });
});
