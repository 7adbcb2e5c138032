import { expect, test } from 'vitest';
import { findGpu } from '../../capacity/gpus.ts';
import { findKnownModel } from '../../capacity/known-models.ts';
import { planLaunch } from '../../capacity/plan-launch.ts';
import { readFacts } from '../../capacity/read-facts.ts';
import { readModelConfig } from '../../capacity/read-model-config.ts';
import { LogFactsReader } from '../../diagnosis/log-facts.ts';
import { UNKNOWN_FACTS } from '../../engine/dialect.ts';
import { type LaunchFlags, SGLANG_LINE, wordsOf } from '../../engine/launching.ts';
import { isBroken } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { findRewritten } from './compare-flags.ts';
import { verifyLaunch } from './verify-launch.ts';

const known = findKnownModel('moonshotai/Kimi-K2.5');
if (known === undefined) throw new Error('the table has no Kimi-K2.5');
const shape = readModelConfig(known);
const gpu = findGpu('NVIDIA RTX PRO 6000 Blackwell Server Edition');
const NO_FP8: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'FP8 KV degrades this model', by: 'model owner' };
const FLAGS = { tp: 8, 'mem-fraction-static': 0.88, 'kv-cache-dtype': 'bf16' };
const measured = { facts: readFacts({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04 }).facts, source: 'the last launch' };

function verify(flags: LaunchFlags, lines: readonly string[], policy: readonly PolicyRule[] = [NO_FP8]) {
  const reader = new LogFactsReader('sglang');
  for (const line of lines) reader.add(`[2026-02-01 01:14:53 TP0] ${line}`);
  const plan = planLaunch({
    engine: 'sglang',
    version: '0.5.8',
    shape,
    gpu,
    flags: wordsOf(flags, SGLANG_LINE),
    observations: [measured],
  });
  return verifyLaunch({ engine: 'sglang', log: reader.read(), server: UNKNOWN_FACTS, plan, flags, policy });
}

const startOf = (args: string, tokens: number, gib: number, free: number, running = 2048) => [
  `server_args=ServerArgs(model_path='/k', tp_size=8, ${args}, page_size=1)`,
  'Load weight begin. avail mem=94.04 GB',
  'Load weight end. type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB.',
  `KV Cache is allocated. #tokens: ${tokens}, KV size: ${gib} GB`,
  `max_total_num_tokens=${tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=${running}, context_len=131072, available_gpu_mem=${free} GB`,
];

test('a person’s edit to 0.88 is verified at 159,277 tokens, though the line is far from the end of the log', () => {
  const noise = Array.from(
    { length: 5000 },
    () => 'Decode batch, #running-req: 1, #token: 9, token usage: 0.00, gen throughput (token/s): 1.00, #queue-req: 0',
  );
  const lines = [...startOf("mem_fraction_static=0.88, kv_cache_dtype='bf16'", 159_277, 10.42, 5.47), ...noise];
  const verified = verify(FLAGS, lines);
  expect(verified).toMatchObject({
    kvType: { type: 'bf16', bits: 16 },
    ...{ poolTokens: 159_277, serverTokens: 159_277, contextTokens: 131_072, maxRunningRequests: 2048, freeAfterGraphsGiB: 5.47 },
    predicted: { insideRange: true },
    rewritten: [],
    warnings: [],
  });
  expect(Math.abs(verified.predicted?.differencePercent ?? 100)).toBeLessThan(0.2);
  expect(verified.policy.map(({ kept, known: isKnown }) => [kept, isKnown])).toEqual([[true, true]]);
  expect(verified.launchClass).toMatchObject({ kvCacheDtype: 'bf16', figures: { memoryFraction: 0.88, freeGiB: 5.47 } });
});

test('FP8 that shows only in bytes per token breaks the owner’s rule', () => {
  const flags = { tp: 8, 'mem-fraction-static': 0.9 };
  const verified = verify(flags, startOf("mem_fraction_static=0.9, kv_cache_dtype='auto'", 376_029, 12.31, 3.52));
  expect(verified.kvType).toMatchObject({ bits: 8, how: 'bytes-per-token' });
  expect(verified.policy.map(isBroken)).toEqual([true]);
  expect(verified.policy[0]?.because).toContain('8 bits');
});

test('bytes win over the flag, and the contradiction is said', () => {
  const verified = verify(FLAGS, startOf("mem_fraction_static=0.88, kv_cache_dtype='bf16'", 318_566, 10.42, 5.47));
  expect(verified.policy.map(isBroken)).toEqual([true]);
  expect(verified.warnings).toContainEqual(expect.stringContaining('the flags in the log ask for bf16'));
});

test('0.93: what is left is less than one prefill chunk needs, and it is said before it dies', () => {
  const flags = { ...FLAGS, 'mem-fraction-static': 0.93 };
  const { warnings } = verify(flags, startOf("mem_fraction_static=0.93, kv_cache_dtype='bf16'", 231_127, 15.13, 0.82));
  expect(warnings).toEqual([
    expect.stringMatching(/^0\.82 GiB are left .* the first large prompt ends this server\. Lower mem-fraction/),
  ]);
});

test('the fraction that SGLang chose itself left almost no pool: the remedy is the fraction', () => {
  const lines = startOf("mem_fraction_static=0.7714564062499999, kv_cache_dtype='auto'", 4578, 0.3, 19.71);
  const { warnings } = verify({ tp: 8 }, lines);
  expect(warnings).toContainEqual(
    expect.stringMatching(/holds 4,578 tokens.*SGLang chose the memory fraction itself; set mem-fraction-static/),
  );
  expect(warnings).toContainEqual(expect.stringContaining('smaller than the context (131,072)'));
});

test('a pool outside the prediction names the figure that changed', () => {
  const lines = startOf("mem_fraction_static=0.88, kv_cache_dtype='bf16'", 120_000, 7.85, 5.47).map((line) =>
    line.replace('94.04', '91.10'),
  );
  const { predicted, warnings } = verify(FLAGS, lines);
  expect(predicted?.insideRange).toBe(false);
  expect(warnings).toContainEqual(
    expect.stringMatching(/2\d\.\d % fewer tokens than predicted.*free before the weights 91\.10 GiB a GPU \(predicted 94\.04\)/),
  );
});

test('flags that the engine rewrote are named with both values', () => {
  const logged = {
    mem_fraction_static: '0.8',
    page_size: '64',
    kv_cache_dtype: 'bfloat16',
    enable_mixed_chunk: 'False',
    schedule_policy: 'fcfs',
    tp_size: '8',
    trust_remote_code: 'True',
    max_running_requests: 'None',
  };
  const flags = {
    ...FLAGS,
    'page-size': 64,
    'enable-mixed-chunk': true,
    'schedule-policy': 'lpm',
    'trust-remote-code': true,
    port: 8000,
  };
  expect(findRewritten('sglang', flags, logged)).toEqual([
    { name: 'mem-fraction-static', sent: '0.88', taken: '0.8' },
    { name: 'enable-mixed-chunk', sent: 'true', taken: 'False' },
    { name: 'schedule-policy', sent: 'lpm', taken: 'fcfs' },
  ]);
  expect(
    findRewritten('vllm', { 'max-model-len': '8k', dtype: 'bfloat16' }, { max_model_len: '8000', dtype: 'torch.bfloat16' }),
  ).toEqual([]);
});

test('without a log and a plan only what the server says is known', () => {
  const server = { ...UNKNOWN_FACTS, kvCacheDtype: 'fp8_e4m3', poolTokens: 100_000, contextTokens: 32_768, sequences: 64 };
  const verified = verifyLaunch({ engine: 'vllm', log: undefined, server, plan: undefined, flags: {}, policy: [NO_FP8] });
  expect(verified).toMatchObject({
    kvType: { bits: 8, how: 'server-info' },
    poolTokens: 100_000,
    serverTokens: 100_000,
    predicted: undefined,
    warnings: [],
  });
  expect(verified.policy.map(isBroken)).toEqual([true]);
  const silent = verifyLaunch({
    engine: 'vllm',
    log: undefined,
    server: UNKNOWN_FACTS,
    plan: undefined,
    flags: {},
    policy: [NO_FP8],
  });
  expect(silent.policy.map(isBroken)).toEqual([true]); // about the numerics, and not to be told
  expect(silent.warnings.join(' ')).toMatch(/Nothing tells the type.*does not say how many tokens/);
});

test('fewer running requests than were asked for', () => {
  const lines = startOf("mem_fraction_static=0.88, kv_cache_dtype='bf16'", 159_277, 10.42, 5.47, 48);
  expect(verify({ ...FLAGS, 'max-running-requests': 256 }, lines).warnings.at(-1)).toContain(
    '48 requests at once, fewer than the 256',
  );
});
