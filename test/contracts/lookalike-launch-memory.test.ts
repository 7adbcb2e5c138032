/** GPU memory of the lookalike as a launcher: what it holds, what others leave it, what it runs out of at work, what its KV cache really is. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openGpuMemory } from '../../src/programs/lookalike/gpu-memory.ts';
import { accountOf, verdictOf } from '../support/diagnose-log.ts';
import { KIMI, STORY, startLaunch } from '../support/launch-bench.ts';
import { until } from '../support/lookalike-bench.ts';

const KILLED = { code: null, signal: 'SIGKILL' };
const AT_088 = [...KIMI, '--mem-fraction-static', '0.88'];

/** Cards that nobody holds, as `nvidia-smi` would list them. */
function makeCards(count: number): { readonly env: Record<string, string>; free(): number[] } {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-cards-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(folder, { recursive: true });
  const cards = Array.from({ length: count }, (_, index) => ({
    uuid: `GPU-${index}`,
    name: 'NVIDIA RTX PRO 6000 Blackwell Server Edition',
    totalMiB: 97_887,
    baseMiB: 0,
  }));
  writeFileSync(join(folder, 'gpus.json'), JSON.stringify(cards));
  const env = { AERIE_LOOKALIKE_GPUS: folder };
  return {
    env,
    free() {
      const memory = openGpuMemory(env);
      return cards.map((_, index) => memory?.free(index) ?? 0);
    },
  };
}

test('each rank holds its card, more with every step, and all comes back when the launch is killed', async () => {
  const cards = makeCards(8);
  const launch = await startLaunch({ scenario: STORY, flags: AT_088, env: cards.env });
  await launch.until('Load weight begin');
  await launch.until('Memory pool end');
  expect(cards.free()[7]).toBeLessThan(97_887 - 72 * 1024);
  await launch.until('fired up');
  // 5.47 GiB left after capture, on each card.
  expect(cards.free().map((mib) => (mib / 1024).toFixed(2))).toEqual(Array.from({ length: 8 }, () => '5.48'));
  launch.kill('SIGKILL');
  await launch.exited;
  await until(() => cards.free().every((mib) => mib === 97_887));
});

test('a leftover on one card makes the next launch unbalanced; on all cards, too full for the weights', async () => {
  const cards = makeCards(8);
  const leftover = await startLaunch({
    scenario: { machine: { freeBeforeLoadGiB: 94 }, leavesRanks: true },
    flags: ['--model-path', 'Qwen/Qwen3-8B', '--mem-fraction-static', '0.6'],
    env: cards.env,
  });
  await leftover.until('fired up');
  leftover.kill('SIGKILL');
  await leftover.exited;
  const next = await startLaunch({ scenario: STORY, flags: AT_088, env: cards.env });
  expect(await next.exited).toEqual(KILLED);
  expect(verdictOf(next.log())).toMatchObject({ state: 'crashed', cause: 'unbalanced-gpu-memory', phase: 'distributed-init' });
  const alone = await startLaunch({
    scenario: STORY,
    flags: ['--model-path', 'Qwen/Qwen3-32B', '--mem-fraction-static', '0.88'],
    env: cards.env,
  });
  expect(await alone.exited).toEqual(KILLED);
  expect(verdictOf(alone.log())).toMatchObject({ state: 'crashed', cause: 'weights-exceed-gpu-memory' });
  expect(accountOf(alone.log()).facts.freeBeforeLoadGiB).toBeLessThan(60);
  const vllm = await startLaunch({ as: 'vllm@0.16.0', flags: ['Qwen/Qwen3-8B'], env: cards.env });
  expect((await vllm.exited).code).toBe(1);
  expect(verdictOf(vllm.log())).toMatchObject({ state: 'crashed', cause: 'gpu-memory-held-by-other-process' });
});

test('0.93 starts with 0.82 GB left and dies of the first large prefill, not of a small one; 0.88 survives both', async () => {
  const ask = (port: number, characters: number) =>
    fetch(`http://127.0.0.1:${port}/generate`, {
      method: 'POST',
      body: JSON.stringify({ text: 'x'.repeat(characters), sampling_params: { max_new_tokens: 4 } }),
    });
  const greedy = await startLaunch({ scenario: STORY, flags: [...KIMI, '--mem-fraction-static', '0.93'] });
  await greedy.until('fired up');
  expect((await ask(greedy.port, 2000)).status).toBe(200);
  await expect(ask(greedy.port, 20_000)).rejects.toThrow();
  expect(await greedy.exited).toEqual(KILLED);
  const verdict = verdictOf(greedy.log());
  expect(verdict).toMatchObject({
    state: 'crashed',
    cause: 'runtime-oom-activation',
    phase: 'serving',
    restartSameFlagsHelps: false,
  });
  expect(verdict.remedy.flag).toBe('--mem-fraction-static');
  expect(greedy.log()).toMatch(
    /Tried to allocate [\d.]+ [MG]iB\. GPU 0 has a total capacity of 95\.04 GiB of which [\d.]+ MiB is free/,
  );
  expect(greedy.log()).toContain('SIGQUIT received. signum=None, frame=None. It usually means one child failed.');
  const calm = await startLaunch({ scenario: STORY, flags: AT_088 });
  await calm.until('fired up');
  expect((await ask(calm.port, 20_000)).status).toBe(200);
});

test('FP8 that no line names shows in the bytes of a token alone', async () => {
  const hidden = await startLaunch({ scenario: { ...STORY, hidesKvType: true }, flags: [...AT_088, '--kv-cache-dtype', 'bf16'] });
  await hidden.until('fired up');
  const { facts } = accountOf(hidden.log());
  expect(facts.kvCacheDtype).toBeUndefined();
  expect(hidden.log()).not.toMatch(/float8|FP8/);
  expect(facts.arguments['kv_cache_dtype']).toBe('bf16');
  // 10.42 GiB in 318,554 tokens: 35 KB each, where 16 bits would be 70.
  expect(((facts.poolGiB ?? 0) * 2 ** 30) / (facts.poolTokens ?? 1)).toBeCloseTo(35_136, -2);
  const info = await (await fetch(`http://127.0.0.1:${hidden.port}/server_info`)).json();
  expect(info).toMatchObject({ kv_cache_dtype: 'bf16' });
});

test('a checkpoint with an FP8 algorithm makes auto FP8: named by versions that have a line, silent before 0.5.3', async () => {
  const scenario = { machine: { ...STORY.machine, kvCacheAlgorithm: 'FP8' } };
  const named = await startLaunch({ scenario, flags: AT_088 });
  await named.until('fired up');
  expect(accountOf(named.log()).facts.kvCacheDtype).toBe('torch.float8_e4m3fn');
  expect(accountOf(named.log()).facts.arguments['kv_cache_dtype']).toBe('auto');
  const plain = await startLaunch({ as: 'sglang@0.5.2', scenario, flags: AT_088 });
  await plain.until('fired up');
  expect(accountOf(plain.log()).facts).toMatchObject({ poolTokens: 159_277 }); // 0.5.2 does not look at the algorithm
});

test('a folder with config.json is a model, and nothing else that is unknown', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-model-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const unknown = await startLaunch({ flags: ['--model-path', folder] });
  expect((await unknown.exited).code).toBe(1);
  expect(unknown.log()).toContain('is not a valid model identifier');
  const config = { num_hidden_layers: 4, hidden_size: 512, intermediate_size: 1024, num_attention_heads: 8, vocab_size: 1000 };
  const more = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    max_position_embeddings: 4096,
    num_key_value_heads: 4,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...more, torch_dtype: 'bfloat16' }));
  const known = await startLaunch({ flags: ['--model-path', folder], scenario: { machine: { gpu: 'L4' } } });
  await known.until('fired up');
  expect(known.log()).toContain('context_len=4096');
  expect(readdirSync(folder)).toEqual(['config.json']);
});
