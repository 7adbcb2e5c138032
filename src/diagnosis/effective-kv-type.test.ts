import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countTokenBytes } from '../capacity/bytes-per-token.ts';
import { findGpu } from '../capacity/gpus.ts';
import { findKnownModel } from '../capacity/known-models.ts';
import { planLaunch } from '../capacity/plan-launch.ts';
import { readModelConfig } from '../capacity/read-model-config.ts';
import { type ServerFacts, UNKNOWN_FACTS } from '../engine/dialect.ts';
import { dialectOf } from '../engine/dialects.ts';
import { findEffectiveKvType } from './effective-kv-type.ts';
import { type LogFacts, LogFactsReader } from './log-facts.ts';
import { LogReader } from './read-log.ts';

const gpu = findGpu('NVIDIA RTX PRO 6000 Blackwell Server Edition');

function planOf(model: string, engine: 'sglang' | 'vllm' = 'sglang', words: readonly string[] = ['--tp', '8']) {
  const known = findKnownModel(model);
  if (known === undefined) throw new Error(`the table has no ${model}`);
  return planLaunch({
    engine,
    version: engine === 'sglang' ? '0.5.9' : '0.16.0',
    shape: readModelConfig(known),
    gpu,
    flags: words,
  });
}

function readLines(...lines: string[]): LogFacts {
  const reader = new LogFactsReader();
  for (const line of lines) reader.add(line);
  return reader.read();
}

const server = (facts: Partial<ServerFacts>): ServerFacts => ({ ...UNKNOWN_FACTS, ...facts });
const kimi = planOf('moonshotai/Kimi-K2.5');

/** The story's two capacities, with the size that the engine prints beside each. */
const BF16 = '[2026-02-01 01:14:53 TP0] KV Cache is allocated. #tokens: 159277, KV size: 10.42 GB';
const FP8 = '[2026-02-01 01:14:53 TP0] KV Cache is allocated. #tokens: 376029, KV size: 12.31 GB';
const ARGS = (type: string) =>
  `[2026-02-01 01:13:04] server_args=ServerArgs(model_path='/k', tp_size=8, kv_cache_dtype='${type}', page_size=1)`;

describe('the log alone', () => {
  it('bytes per token tell the type where no line names it and the flags say auto', () => {
    const found = findEffectiveKvType({ log: readLines(ARGS('auto'), FP8), plan: kimi });
    expect(found).toMatchObject({ type: 'fp8', bits: 8, how: 'bytes-per-token' });
    expect(found.because).toContain('12.31 GiB for 376029 tokens');
    expect(findEffectiveKvType({ log: readLines(ARGS('auto'), BF16), plan: kimi })).toMatchObject({ type: 'bf16', bits: 16 });
  });

  it.each([
    ['Using KV cache dtype: torch.bfloat16', 'bf16', 16],
    ['Using KV cache dtype: torch.float8_e4m3fn', 'fp8_e4m3', 8],
    ['KV Cache is allocated. dtype: torch.float8_e5m2, #tokens: 100, KV size: 0.00 GB', 'fp8_e5m2', 8],
    ['Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0.', 'fp8_e4m3', 8],
    ['Setting KV cache dtype to fp8_e4m3 for DeepSeek DSA on SM12 device.', 'fp8_e4m3', 8],
    ['Setting KV cache dtype to fp8.', 'fp8_e4m3', 8],
    ["Kimi-K3 DCP with tokenspeed mla backend overrides KV cache dtype: 'bf16' -> 'fp8_e4m3'.", 'fp8_e4m3', 8],
  ])('%s', (line, type, bits) => {
    const log = readLines(ARGS('auto'), `[2026-02-01 01:14:53 TP0] ${line}`);
    expect(findEffectiveKvType({ log })).toMatchObject({ type, bits, how: 'log-line' });
  });

  it.each([
    ['Setting KV cache dtype to fp8_e4m3 for DeepSeek DSA on SM12 device.', 'fp8_e4m3'],
    ['Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0.', 'fp8'],
    ['Using KV cache scaling factor 1.0 for fp8_e4m3. This may cause accuracy issues.', 'fp8_e4m3'],
  ])('the reader of whole logs meets it too: %s', (line, dtype) => {
    const reader = new LogReader({ engine: line.includes('accuracy issues') ? 'vllm' : 'sglang' });
    reader.feed(Buffer.from(`a line of no interest\n${line}\n`));
    expect(reader.account().facts.kvTypeHint).toBe(dtype);
  });

  it('a line that names the type wins over the flags that were asked for, and says so', () => {
    const log = readLines(ARGS('bf16'), '[2026-02-01 01:14:53 TP0] Using KV cache dtype: torch.float8_e4m3fn');
    expect(findEffectiveKvType({ log })).toMatchObject({ bits: 8, contradicts: 'the flags in the log ask for bf16' });
  });

  it('auto is no answer, and neither is a plan', () => {
    const found = findEffectiveKvType({ log: readLines(ARGS('auto')), server: server({ kvCacheDtype: 'unknown' }), plan: kimi });
    expect(found).toMatchObject({ type: 'unknown', bits: undefined, how: 'unknown' });
    expect(findEffectiveKvType({})).toMatchObject({ how: 'unknown' });
  });

  it('the size is held against the tokens of its own line, not against another count', () => {
    const capacity = '[2026-02-01 01:14:54 TP0] max_total_num_tokens=318554, chunked_prefill_size=8192, context_len=262144';
    const log = readLines(ARGS('auto'), BF16, capacity);
    expect(log).toMatchObject({ poolTokens: 318_554, allocatedTokens: 159_277 });
    expect(findEffectiveKvType({ log, plan: kimi })).toMatchObject({ type: 'bf16', bits: 16 });
  });

  it('a pool of a few megabytes is rounded too much to tell', () => {
    const log = readLines(ARGS('auto'), '[2026-02-01 01:14:53 TP0] KV Cache is allocated. #tokens: 150, KV size: 0.01 GB');
    expect(findEffectiveKvType({ log, plan: kimi })).toMatchObject({ how: 'unknown' });
  });
});

describe('the server’s own account', () => {
  const infoOf = (type: string, kvcache: number, tokens: number) => {
    const state = { kv_cache_dtype: type, memory_usage: { weight: 72.33, kvcache, token_capacity: tokens, graph: 2.3 } };
    const body = JSON.stringify({ model_path: '/k', version: '0.5.8', internal_states: [state] });
    const reply = (text: string) => ({ status: 200, body: text });
    return dialectOf('sglang').parseFacts([reply('{"data":[{"id":"k"}]}'), reply(body)], 'k');
  };

  it('its memory usage shows FP8 that it calls auto', () => {
    const facts = infoOf('auto', 12.31, 376_029);
    expect(facts.kvCacheDtype).toBe('unknown');
    expect(Math.abs(facts.kvBytesPerToken / 35_136 - 1)).toBeLessThan(0.001);
    expect(findEffectiveKvType({ server: facts, plan: kimi })).toMatchObject({ type: 'fp8', bits: 8, how: 'bytes-per-token' });
    expect(findEffectiveKvType({ server: infoOf('auto', 10.42, 159_277), plan: kimi })).toMatchObject({ type: 'bf16', bits: 16 });
  });

  it('bytes win over the name, which is said', () => {
    const found = findEffectiveKvType({ server: infoOf('bf16', 12.31, 376_029), plan: kimi });
    expect(found).toMatchObject({ bits: 8, how: 'bytes-per-token', contradicts: 'the server says of itself bf16' });
  });

  it.each([0.09, -1, Number.NaN, 'big', null])('a size of %j tells nothing', (size) => {
    expect(infoOf('auto', size as number, 1000).kvBytesPerToken).toBe(0);
  });

  it('the label of vLLM’s metric is a name like any other', () => {
    expect(findEffectiveKvType({ server: server({ kvCacheDtype: 'fp8' }) })).toMatchObject({ bits: 8, how: 'server-info' });
  });
});

describe('models of other kinds', () => {
  const MODELS = ['moonshotai/Kimi-K2.5', 'Qwen/Qwen3-235B-A22B', 'deepseek-ai/DeepSeek-V3.2'].filter(
    (name) => findKnownModel(name) !== undefined,
  );
  const TYPES = [
    { type: 'bf16', bits: 16, scaleBytesPerElement: 0 },
    { type: 'fp8_e4m3', bits: 8, scaleBytesPerElement: 0 },
    { type: 'fp4', bits: 4, scaleBytesPerElement: 1 / 16 },
  ];

  it('whatever was allocated, with the rounding of its line, is recognised', () => {
    expect(MODELS.length).toBeGreaterThan(1);
    const cases = fc.record({
      model: fc.constantFrom(...MODELS),
      type: fc.constantFrom(...TYPES),
      tokens: fc.integer({ min: 20_000, max: 2_000_000 }),
      tp: fc.constantFrom(1, 2, 4, 8),
    });
    fc.assert(
      fc.property(cases, ({ model, type, tokens, tp }) => {
        // The plan says tp 8; the log says what it really was.
        const plan = planOf(model);
        const actual = { ...plan.launch, tp, attentionTp: tp, kvType: { ...plan.launch.kvType, ...type } };
        const gib = (countTokenBytes(plan.shape, actual).bytes * (tokens + actual.pageTokens)) / 2 ** 30;
        const hasHeads = plan.shape.caches.some(({ kind }) => kind === 'heads');
        const half = (gib / 2).toFixed(2);
        const sizes = hasHeads ? `K size: ${half} GB, V size: ${half} GB` : `KV size: ${gib.toFixed(2)} GB`;
        const args = `server_args=ServerArgs(model_path='/k', tp_size=${tp}, kv_cache_dtype='auto')`;
        const log = readLines(args, `KV Cache is allocated. #tokens: ${tokens}, ${sizes}`);
        expect(findEffectiveKvType({ log, plan })).toMatchObject({ bits: type.bits, how: 'bytes-per-token' });
      }),
    );
  });

  it('vLLM: what was free for the pool, over the tokens that it holds', () => {
    const plan = planOf('moonshotai/Kimi-K2.5', 'vllm', ['--tensor-parallel-size', '8']);
    const log = readLines(
      'INFO 11-01 10:51:48 [gpu_worker.py:349] Available KV cache memory: 14.60 GiB',
      'INFO 11-01 10:51:48 [kv_cache_utils.py:1229] GPU KV cache size: 446,000 tokens',
    );
    expect(findEffectiveKvType({ log, plan })).toMatchObject({ type: 'fp8', bits: 8, how: 'bytes-per-token' });
  });
});
