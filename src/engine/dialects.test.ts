/** What the dialects read out of a server's account of itself; what is missing stays unknown and is never guessed. */
import { expect, test } from 'vitest';
import { ENGINES, type EngineName, type FactReply, UNKNOWN_FACTS } from './dialect.ts';
import { dialectOf } from './dialects.ts';

const ok = (body: unknown): FactReply => ({ status: 200, body: typeof body === 'string' ? body : JSON.stringify(body) });
const absent: FactReply = { status: 404, body: '{"detail":"Not Found"}' };
const models = (...ids: string[]) => ok({ data: ids.map((id) => ({ id, max_model_len: 8192 })) });

test('the embedded engine tells everything', () => {
  const info = {
    ...{ served_model_name: 'm', model_path: '/x', revision: 'r', version: '1.2', weights: 'Q4_1', kv_cache_dtype: 'f16' },
    ...{ template_hash: 'h', context_length: 4096, vocab_size: 49_152, stop_token_ids: [2, -1, 'x'], max_running_requests: 8 },
    ...{ max_total_num_tokens: 32_768, reasoning_parser: 'qwen3', tool_call_parser: null },
  };
  expect(dialectOf('embedded').parseFacts([ok(info)], 'm')).toEqual({
    ...{ model: 'm', revision: 'r', engineVersion: '1.2', weights: 'Q4_1', kvCacheDtype: 'f16', templateHash: 'h' },
    ...{ contextTokens: 4096, vocabularySize: 49_152, stopIds: [2], sequences: 8, poolTokens: 32_768, kvBytesPerToken: 0 },
    ...{ reasoningParser: 'qwen3', toolCallParser: '' },
  });
});

test('vLLM tells its model, its version and its context, and in its metrics the type and the size of the KV cache', () => {
  const metrics = (dtype: string, engine = 0) =>
    `vllm:cache_config_info{block_size="16",cache_dtype="${dtype}",engine="${engine}",num_gpu_blocks="1000",sliding_window="None"} 1.0\n`;
  const facts = (text: string) => dialectOf('vllm').parseFacts([models('m'), ok({ version: '0.11.0' }), ok(text)], 'm');
  const known = { ...UNKNOWN_FACTS, model: 'm', engineVersion: '0.11.0', contextTokens: 8192 };
  expect(facts(`# HELP vllm:cache_config_info x\n${metrics('fp8_e4m3')}`)).toEqual({
    ...known,
    kvCacheDtype: 'fp8_e4m3',
    poolTokens: 16_000,
  });
  expect(facts(metrics('bfloat16') + metrics('bfloat16', 1))).toMatchObject({ kvCacheDtype: 'bfloat16', poolTokens: 32_000 });
  expect(facts(metrics('auto'))).toMatchObject({ kvCacheDtype: 'unknown', poolTokens: 16_000 });
  expect(facts(metrics('bfloat16') + metrics('fp8', 1)).kvCacheDtype).toBe('unknown');
  expect(facts('vllm:cache_config_info{num_gpu_blocks="None",block_size="16"} 1')).toEqual(known);
});

test('SGLang tells most of it under its newer or its older path, and its model under a third', () => {
  const info = {
    ...{ model_path: 'org/m', served_model_name: 'm', version: '0.5.9', kv_cache_dtype: 'auto', context_length: null },
    ...{ max_total_num_tokens: 159_277, max_running_requests: null, dtype: 'bfloat16', quantization: null, api_key: 'secret' },
    internal_states: [{ effective_max_running_requests_per_dp: 64 }, { effective_max_running_requests_per_dp: 64 }],
  };
  const read = (...replies: FactReply[]) => dialectOf('sglang').parseFacts(replies, 'm');
  const known = { ...UNKNOWN_FACTS, model: 'm', engineVersion: '0.5.9', contextTokens: 8192, weights: 'bfloat16' };
  const told = { ...known, sequences: 128, poolTokens: 159_277 };
  expect(read(models('m'), ok(info), ok(info), absent)).toEqual(told);
  expect(read(models('m'), absent, ok(info), absent)).toEqual(told);
  expect(JSON.stringify(read(models('m'), ok(info), absent, absent))).not.toContain('secret');
  const resolved = { ...info, internal_states: [{ kv_cache_dtype: 'fp8_e4m3' }] };
  expect(read(models('m'), ok(resolved), absent, absent).kvCacheDtype).toBe('fp8_e4m3');
  expect(read(absent, absent, absent, ok({ model_path: 'org/m' }))).toEqual({ ...UNKNOWN_FACTS, model: 'org/m' });
});

test.each(ENGINES.filter((name) => name !== 'embedded').map((name) => [name]))(
  '%s: of several models the one that the run file names, else none; of one, that one',
  (name) => {
    const modelOf = (list: FactReply, wanted: string) => dialectOf(name).parseFacts([list], wanted).model;
    expect(modelOf(models('a', 'b'), 'b')).toBe('b');
    expect(modelOf(models('a', 'b'), 'c')).toBe('');
    expect(modelOf(models('a'), 'c')).toBe('a');
    expect(modelOf(ok({ data: [{ id: 'a' }, { id: 'b', root: '/models/c' }] }), '/models/c')).toBe('b');
  },
);

test.each<[EngineName, string, boolean, readonly string[]]>([
  ['embedded', '3.21.1', true, ['return_token_ids']],
  ['vllm', '0.10.1.1', false, []],
  ['vllm', '0.10.2', true, ['return_token_ids']],
  ['vllm', '0.10.2rc1.dev7+g1234', true, ['return_token_ids']],
  ['vllm', '1.0', true, ['return_token_ids']],
  ['vllm', '', true, ['return_token_ids']],
  ['sglang', '0.4.6.post5', false, []],
  ['sglang', '0.5.12', false, []],
  ['sglang', '0.5.13', true, ['return_token_ids', 'return_prompt_token_ids', 'return_meta_info', 'logprobs']],
  ['sglang', '0.5.17', true, ['return_token_ids', 'return_prompt_token_ids', 'return_meta_info', 'logprobs']],
  ['sglang', '0.5.18', true, ['return_token_ids']],
  ['sglang', 'main', true, ['return_token_ids']],
  ['openai', '', false, []],
])('%s %s: exact %s, asked for by %j', (name, engineVersion, exact, fields) => {
  const facts = { ...UNKNOWN_FACTS, engineVersion };
  const dialect = dialectOf(name);
  const because = exact ? '' : expect.stringMatching(/text|no token ids/);
  expect(dialect.exactness(facts)).toEqual({ exact, because, how: expect.stringMatching(/./) });
  const turn = {
    ...{ model: 'm', messages: [{ role: 'user' as const, content: 'x' }], tools: [], seed: 1, templateKwargs: {}, extraBody: {} },
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 5, seed: 1, stop: [] },
  };
  const sent = Object.keys(JSON.parse(dialect.renderTurn(turn, facts).body ?? '') as object);
  expect(sent.filter((key) => key.startsWith('return_') || key === 'logprobs')).toEqual(fields);
});

test.each(ENGINES.map((name) => [name]))(
  '%s: an account that is empty, cut or of another shape leaves everything unknown',
  (name) => {
    const dialect = dialectOf(name);
    for (const body of ['', '{', '[]', 'null', '{"data":{}}', '{"data":[3]}', '{"vocab_size":-5,"context_length":1.5}']) {
      expect(
        dialect.parseFacts(
          dialect.factRequests.map(() => ({ status: 200, body })),
          'm',
        ),
      ).toEqual(UNKNOWN_FACTS);
    }
    expect(dialect.parseFacts([], 'm')).toEqual(UNKNOWN_FACTS);
  },
);

test.each(ENGINES.map((name) => [name]))('%s: only the status of health counts, and ids are decoded', (name) => {
  const dialect = dialectOf(name);
  const noList = name === 'openai';
  expect([200, 503, 404, 500].map((status) => dialect.isReady(status))).toEqual([true, false, noList, false]);
  expect(dialect.renderDetokenize([1, 2])).toEqual({ method: 'POST', path: '/detokenize', body: '{"tokens":[1,2]}' });
  for (const body of ['{"prompt":"ab"}', '{"text":"ab"}']) expect(dialect.readDetokenize({ status: 200, body })).toBe('ab');
  for (const reply of [{ status: 404, body: '{"prompt":"ab"}' }, ok('{'), ok('{"prompt":1}')])
    expect(dialect.readDetokenize(reply)).toBeUndefined();
});
