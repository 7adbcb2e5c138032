/** The surface of a served launch by engine and version: paths, names of metrics, lines, and where token ids are. */
import { describe, expect, test } from 'vitest';
import { readSamples } from '../../src/engine/prometheus.ts';
import { sglang } from '../../src/engine/sglang/sglang.ts';
import { KIMI, STORY } from '../support/launch-bench.ts';
import { startServing } from '../support/serve-bench.ts';

const FLAGS = [...KIMI, '--mem-fraction-static', '0.88'];
const CHAT = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 90, seed: 3 };
const IDS = { return_token_ids: true, return_prompt_token_ids: true, return_meta_info: true, logprobs: true };
const started = (as: string, ...flags: string[]) =>
  startServing({
    as,
    scenario: { ...STORY, answerTokens: { kind: 'fixed', tokens: 80 } },
    flags: [...FLAGS, ...flags],
    clockRate: 200,
  });

const IN_PLACES = {
  '0.5.8': { prompt: undefined, output: undefined },
  '0.5.15': { prompt: 'choice', output: 'meta_info' },
  '0.5.18': { prompt: 'choice', output: 'response_token_ids' },
} as const;

describe.each([
  [
    '0.5.3',
    159_277,
    { path: '/get_server_info', newer: 404 },
    /Prefill batch\. #new-seq: 1, .*#queue-req: 0, \n/,
    /Decode batch\. .*#queue-req: 0, \n/,
  ],
  [
    '0.5.8',
    159_277,
    { path: '/server_info', newer: 200 },
    /Prefill batch, #new-seq: 1, .*#queue-req: 0, \n/,
    /Decode batch, .*#queue-req: 0, \n/,
  ],
  [
    '0.5.18',
    157_784, // it keeps 0.10 GiB for images
    { path: '/server_info', newer: 200 },
    /Prefill batch, .*#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput \(token\/s\): [\d.]+\n/,
    /Decode batch, .*#queue-req: 0\n/,
  ],
] as const)('SGLang %s', (version, pool, info, prefill, decode) => {
  test('says what it is, as its version says it', async () => {
    const bench = await started(`sglang@${version}`);
    const { json } = await bench.ask('GET', info.path);
    expect((await bench.ask('GET', '/server_info')).status).toBe(info.newer);
    expect(json).toMatchObject({ version, tp_size: 8, mem_fraction_static: 0.88, max_total_num_tokens: pool });
    expect(json.internal_states[0].memory_usage.token_capacity).toBe(pool);
    const { kvcache, token_capacity: tokens } = json.internal_states[0].memory_usage;
    expect(Math.abs((kvcache * 2 ** 30) / tokens / 70_272 - 1)).toBeLessThan(0.001); // bf16, whatever is said
    const models = await bench.ask('GET', '/v1/models');
    expect(models.json.data[0].max_model_len).toBe(262_144);
    const facts = sglang.parseFacts(
      await Promise.all(
        sglang.factRequests.map(async ({ path }) => bench.ask('GET', path).then(({ status, text: body }) => ({ status, body }))),
      ),
      '',
    );
    expect(facts).toMatchObject({ engineVersion: version, poolTokens: pool, sequences: 2048, contextTokens: 262_144 });
    expect((await bench.ask('GET', '/metrics')).status).toBe(404); // without --enable-metrics

    const reply = await bench.ask('POST', '/generate', { input_ids: [5, 6, 7], sampling_params: { max_new_tokens: 90 } });
    expect(reply.json.meta_info).toMatchObject({ prompt_tokens: 3, completion_tokens: 80, cached_tokens: 0 });
    expect(reply.json.output_ids).toHaveLength(80);
    expect('total_retractions' in reply.json.meta_info).toBe(version !== '0.5.3');
    await bench.until('"POST /generate HTTP/1.1" 200 OK');
    expect(bench.log()).toMatch(prefill);
    expect(bench.log()).toMatch(decode);
    expect(bench.log()).toMatch(/\] INFO: {5}127\.0\.0\.1:\d+ - "POST \/generate HTTP\/1\.1" 200 OK\n/);
  });
});

test.each(Object.entries(IN_PLACES))('SGLang %s has the ids of a chat where that version has them', async (version, places) => {
  const bench = await started(`sglang@${version}`);
  const { json } = await bench.ask('POST', '/v1/chat/completions', { ...CHAT, ...IDS });
  const [choice] = json.choices;
  expect(choice.prompt_token_ids?.length).toBe(places.prompt === undefined ? undefined : json.usage.prompt_tokens);
  const output = choice.response_token_ids ?? choice.meta_info?.output_token_logprobs;
  expect(output?.length).toBe(places.output === undefined ? undefined : 80);
  if (places.output !== undefined) expect(places.output in choice).toBe(true);
  const unasked = await bench.ask('POST', '/v1/chat/completions', CHAT);
  expect(unasked.json.choices[0]).not.toHaveProperty('prompt_token_ids');
  expect((await bench.ask('POST', '/tokenize', { messages: CHAT.messages })).status).toBe(400); // text only
});

test('the type of the KV cache reads auto where nobody named one, until 0.5.18 writes it back', async () => {
  const read = async (version: string) => {
    const bench = await startServing({
      as: `sglang@${version}`,
      scenario: STORY,
      flags: [...KIMI, '--mem-fraction-static', '0.88'],
    });
    return (await bench.ask('GET', '/server_info')).json.kv_cache_dtype;
  };
  expect(await read('0.5.8')).toBe('auto');
  expect(await read('0.5.18')).toBe('bf16');
});

test('counters and gauges have the names of the version', async () => {
  const namesOf = async (version: string) => {
    const bench = await started(`sglang@${version}`, '--enable-metrics');
    await bench.ask('POST', '/generate', { text: 'x', sampling_params: { max_new_tokens: 90 } });
    const { text } = await bench.ask('GET', '/metrics');
    expect(readSamples(text, 'sglang:generation_tokens_total')[0]?.value).toBe(80);
    expect(readSamples(text, 'sglang:prompt_tokens_total')[0]?.value).toBe(1);
    return new Set([...text.matchAll(/^sglang:(\w+)/gm)].map(([, name]) => name));
  };
  const older = await namesOf('0.5.3');
  expect(older).toContain('total_retracted_reqs');
  expect(older).not.toContain('max_total_num_tokens');
  const newer = await namesOf('0.5.12');
  for (const name of ['max_total_num_tokens', 'realtime_tokens_total', 'kv_available_tokens']) expect(newer).toContain(name);
  expect(newer).not.toContain('total_retracted_reqs');
});

test('a key guards all but health and metrics', async () => {
  const bench = await started('sglang@0.5.8', '--api-key', 'k');
  expect((await bench.ask('GET', '/health')).status).toBe(200);
  expect((await bench.ask('GET', '/v1/models')).status).toBe(401);
});
