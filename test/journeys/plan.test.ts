/** `aerie plan` as a person types it: the story's launches, a log, a sweep, a model of their own, and what goes wrong. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeProject } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { startHubServer } from '../support/hub-server.ts';
import { lookalikeProject } from '../support/lookalike-project.ts';
import { readShardLines } from '../support/run-folder.ts';

const door = openDoor();

/** Kimi-K2.5 on eight cards of 96 GB: weights and free memory as a log of that machine prints them. */
const FACTS = JSON.stringify({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04 });
const STORY = [
  'plan',
  '--engine',
  'sglang',
  '--engine-version',
  '0.5.8',
  '--model',
  'moonshotai/Kimi-K2.5',
  '--gpu',
  'RTX PRO 6000',
];
const FLAGS = ['--', '--tp', '8', '--kv-cache-dtype', 'bf16'];
const RUN = `run: kimi
model: moonshotai/Kimi-K2.5
servers:
  - engine: sglang
    engine-version: 0.5.8
    gpu: RTX PRO 6000
    flags: { tp: 8, mem-fraction-static: 0.88, kv-cache-dtype: bf16, enable-hierarchical-cache: true, hicache-size: 48 }
policy:
  - forbid: { kv-cache: below-16-bit }
    because: FP8 KV degrades it
    by: model owner
partitions: [{ name: B1, from: b1.jsonl }]
`;

function storyProject() {
  // No cache and no hub: what follows works offline.
  const project = door.through(makeProject());
  writeFileSync(join(project.folder, 'run.yaml'), RUN);
  const env = { HF_ENDPOINT: 'http://127.0.0.1:9', AERIE_CACHE: join(project.folder, 'cache') };
  const plan = (args: readonly string[], over: Readonly<Record<string, string>> = {}) =>
    project.aerie(args, { env: { ...env, ...over } });
  return { folder: project.folder, plan };
}

describe('the launches of the story', () => {
  test('are planned from the command line alone, offline, each with its verdict', async () => {
    const { plan } = storyProject();
    const planned = async (...flags: string[]) => {
      const result = await plan([...STORY, '--facts', FACTS, '--json', ...FLAGS, ...flags]);
      return { code: result.code, data: result.json().data };
    };
    const survives = await planned('--mem-fraction-static', '0.88');
    expect(survives).toMatchObject({ code: 0, data: { verdict: 'fits', bytesPerToken: 70_272, maxRunningRequests: 2048 } });
    expect(Math.abs(survives.data.poolTokens / 159_277 - 1)).toBeLessThan(0.002);
    const dies = await planned('--mem-fraction-static=0.93');
    expect(dies).toMatchObject({ code: 1, data: { verdict: 'dies-under-load' } });
    expect(dies.data.nearest.flags[0]).toBe('--mem-fraction-static');
    expect(Number(dies.data.nearest.flags[1])).toBeLessThan(0.93);
    expect(dies.data.nearest.verdict).toBe('fits');
    const refuses = await planned('--mem-fraction-static', '0.70');
    expect(refuses).toMatchObject({ code: 1, data: { verdict: 'refuses-to-start' } });
    expect(Number(refuses.data.nearest.flags[1])).toBeGreaterThan(0.77);
  });

  test('are planned from a run file, with what its policy forbids and what that costs', async () => {
    const { plan, folder } = storyProject();
    const shown = await plan(['plan', 'run.yaml', '--facts', FACTS]);
    expect(shown.code, shown.stderr).toBe(0);
    expect(shown.stdout).toMatch(/^moonshotai\/Kimi-K2\.5 on 8 × RTX PRO 6000, SGLang 0\.5\.8\n/);
    expect(shown.stdout).toMatch(/host memory +357\.6\d GiB/); // 48 decimal GB on each of eight ranks
    expect(shown.stdout).toMatch(/--kv-cache-dtype fp8_e4m3 .* forbidden/);
    writeFileSync(join(folder, 'limited.yaml'), `${RUN}in-flight: 20\n`);
    const limited = await plan(['plan', 'limited.yaml', '--facts', FACTS, '--json']);
    expect(limited.json().data.steady).toMatchObject({ running: 20, limitedBy: 'client' }); // what the run file keeps in flight
    const broken = await plan(['plan', 'run.yaml', '--facts', FACTS, '--', '--kv-cache-dtype', 'fp8_e4m3']);
    expect(broken.code).toBe(1);
    expect(broken.stdout).toMatch(/policy +BROKEN: .*fp8_e4m3.*FP8 KV degrades it \(decided by model owner\)/);
  });

  test('a sweep is a table and a picture, the forbidden part marked with its rule', async () => {
    const { plan, folder } = storyProject();
    const sweep = ['--sweep', 'mem-fraction-static=0.85..0.93', '--sweep', 'kv-cache-dtype=bf16,fp8_e4m3', '--plot', 'sweep.svg'];
    const result = await plan(['plan', 'run.yaml', '--facts', FACTS, ...sweep]);
    expect(result.code, result.stderr).toBe(0);
    expect(result.stdout.match(/^ +0\.\d\d {2}(bf16|fp8_e4m3)/gm)).toHaveLength(18);
    expect(result.stdout).toMatch(/0\.93 {2}bf16 .*dies under load/);
    expect(result.stdout).toContain('forbidden: FP8 KV degrades it (model owner)');
    const svg = readFileSync(join(folder, 'sweep.svg'), 'utf8');
    expect(svg).toContain('kv-cache-dtype fp8_e4m3 (forbidden: FP8 KV degrades it)');
    expect(svg.match(/<(circle|polygon|path) /g)).toHaveLength(18 + 3); // three in the legend
  });

  test('a whole run is played: running, queued, hours and money, and money follows hours', async () => {
    const { plan } = storyProject();
    const work = [
      '--lengths',
      'lognormal:mean=1000,sigma=0.5',
      '--requests',
      '2000',
      '--in-flight',
      '100',
      '--price-per-hour',
      '10',
    ];
    const result = await plan([...STORY, '--facts', FACTS, ...work, '--json', ...FLAGS, '--mem-fraction-static', '0.88']);
    const { played, steady } = result.json().data;
    expect(played.running + played.queued).toBeLessThanOrEqual(100.5);
    expect(played.generatedTokens).toBeGreaterThan(2000 * 900);
    expect(played.hours).toBeCloseTo(played.generatedTokens / played.tokensPerSecond / 3600, 0);
    expect(Math.abs(played.tokensPerSecond / steady.tokensPerSecond - 1)).toBeLessThan(0.3); // two ways to one figure
    const shown = await plan([...STORY, '--facts', FACTS, ...work, ...FLAGS, '--mem-fraction-static', '0.88']);
    expect(shown.stdout).toMatch(/tok\/s, [\d.]+ hours for the whole run, \d+ at 10 an hour/);
  });
});

test('a log replaces guesses, and tells the other launches nearly exactly', async () => {
  const { plan, folder } = storyProject();
  const at = (time: string, message: string) => `[2026-01-30 ${time} TP0] ${message}`;
  const log = [
    `[2026-01-30 01:13:04] server_args=ServerArgs(model_path='moonshotai/Kimi-K2.5', tp_size=8, mem_fraction_static=0.88, kv_cache_dtype='bf16', context_length=None)`,
    at('01:13:16', 'Load weight begin. avail mem=94.04 GB'),
    at(
      '01:14:42',
      'Load weight end. type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB.',
    ),
    at('01:14:53', 'KV Cache is allocated. #tokens: 159277, KV size: 10.42 GB'),
    at(
      '01:15:30',
      'max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=5.47 GB',
    ),
    ...Array.from({ length: 40 }, (_, step) =>
      at(
        '02:00:00',
        `Decode batch, #running-req: ${30 + (step % 6)}, #token: ${90_000 + 1000 * step}, token usage: 0.90, cuda graph: True, gen throughput (token/s): ${580 + step}.0, #queue-req: 115`,
      ),
    ),
  ];
  writeFileSync(join(folder, 'server.log'), log.join('\n'));
  const other = await plan([
    ...STORY,
    '--log',
    'server.log',
    '--calibrate',
    'server.log',
    '--json',
    '--',
    '--tp',
    '8',
    '--mem-fraction-static',
    '0.90',
    '--kv-cache-dtype',
    'fp8_e4m3',
  ]);
  const { poolTokens, freeAfterGraphsGiB, calibration, sources } = other.json().data;
  expect(Math.abs(poolTokens / 376_029 - 1)).toBeLessThan(0.0002); // what that launch printed
  expect(Math.abs(freeAfterGraphsGiB - 3.52)).toBeLessThan(0.1);
  expect(calibration).toMatchObject({ source: 'server.log', points: 40, largestBatch: 35 });
  expect(calibration.meanError).toBeLessThan(0.1);
  expect(sources.join('\n')).toContain('measured: server.log');

  // The next plan of the same model, version and GPU has it still, and another version does not.
  const later = await plan([...STORY, '--json', '--', '--tp', '8', '--mem-fraction-static', '0.88']);
  expect(Math.abs(later.json().data.poolTokens / 159_277 - 1)).toBeLessThan(0.0002);
  expect(later.json().data.sources.join('\n')).toContain('that Aerie remembers');
  const elsewhere = await plan([
    ...STORY.map((word) => (word === '0.5.8' ? '0.5.9' : word)),
    '--json',
    '--',
    '--tp',
    '8',
    '--mem-fraction-static',
    '0.88',
  ]);
  expect(elsewhere.json().data.sources.join('\n')).not.toContain('remembers');
});

test('a model of one’s own is planned from its folder, and a field that is missing is named', async () => {
  const { plan, folder } = storyProject();
  const model = join(folder, 'my-model');
  mkdirSync(model);
  const config = {
    ...{
      architectures: ['LlamaForCausalLM'],
      model_type: 'llama',
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
    },
    ...{
      num_attention_heads: 32,
      num_key_value_heads: 8,
      vocab_size: 128_256,
      max_position_embeddings: 8192,
      torch_dtype: 'bfloat16',
    },
  };
  writeFileSync(join(model, 'config.json'), JSON.stringify(config));
  const planned = await plan(['plan', '--engine', 'vllm', '--model', 'my-model', '--gpu', 'H100', '--json']);
  expect(planned.json().data).toMatchObject({ verdict: 'fits', bytesPerToken: 32 * 8 * 2 * 128 * 2 });
  writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, num_hidden_layers: undefined }));
  const missing = await plan(['plan', '--engine', 'vllm', '--model', 'my-model', '--gpu', 'H100', '--json']);
  expect(missing.code).toBe(2);
  expect(missing.json().error?.message).toContain('num_hidden_layers');
});

test('a log of another model is used aloud, and not remembered', async () => {
  const { plan, folder } = storyProject();
  const log = [
    `[2026-01-30 01:13:04] server_args=ServerArgs(model_path='/models/other', tp_size=8, mem_fraction_static=0.88)`,
    '[2026-01-30 01:13:16 TP0] Load weight begin. avail mem=94.04 GB',
    '[2026-01-30 01:14:42 TP0] Load weight end. type=X, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB.',
  ];
  writeFileSync(join(folder, 'server.log'), log.join('\n'));
  const used = await plan([...STORY, '--log', 'server.log', '--json', ...FLAGS]);
  expect(used.json().data.assumed).toContainEqual(expect.stringContaining('server.log is of /models/other'));
  const later = await plan([...STORY, '--json', ...FLAGS]);
  expect(later.json().data.sources.join()).not.toContain('remembers');
});

test('a run that has begun says how long its answers are', async () => {
  const project = door.through(await lookalikeProject({ prompts: 30 }));
  const ran = await project.aerie(['run', 'run.yaml']);
  expect(ran.code, ran.stderr).toBe(0);
  const args = ['--workload', 'run.yaml', '--facts', FACTS, '--json', ...FLAGS, '--mem-fraction-static', '0.88'];
  const planned = await project.aerie([...STORY, ...args]);
  const { workload, played } = planned.json().data;
  expect(workload).toEqual({ source: '30 answers of run r', requests: 30, isGiven: true });
  const written = readShardLines(project.runFolder, 'B1').flatMap(({ turns }) => turns.map(({ usage }) => usage.completion));
  expect(played.generatedTokens).toBe(written.reduce((sum, tokens) => sum + tokens, 0));
  // A whole run of more requests like these takes longer in proportion.
  const more = await project.aerie([...STORY, '--requests', '3000', ...args]);
  expect(more.json().data.played.generatedTokens).toBeCloseTo(100 * played.generatedTokens, 0);
});

test('a model of the hub is planned from its config, without a weight, and again from the cache when the hub is gone', async () => {
  const { plan } = storyProject();
  const config = {
    ...{ architectures: ['MistralForCausalLM'], model_type: 'mistral', hidden_size: 2048, intermediate_size: 8192 },
    ...{ num_hidden_layers: 16, num_attention_heads: 16, num_key_value_heads: 4, vocab_size: 32_000 },
    ...{ max_position_embeddings: 4096, torch_dtype: 'bfloat16' },
  };
  const files = {
    'config.json': Buffer.from(JSON.stringify(config)),
    'model.safetensors': Buffer.alloc(5000),
    'README.md': Buffer.from('x'),
  };
  const hub = await startHubServer({ 'acme/tiny': { commit: 'main', files: { main: files } } });
  const args = ['plan', '--engine', 'sglang', '--model', 'acme/tiny', '--gpu', 'L4', '--json'];
  try {
    const first = await plan(args, { HF_ENDPOINT: hub.url });
    expect(first.json().data, first.stderr).toMatchObject({ verdict: 'fits', bytesPerToken: 16 * 4 * 2 * 128 * 2 });
    expect(hub.requests.some((path) => path.includes('config.json'))).toBe(true);
    expect(hub.requests.filter((path) => /resolve.*safetensors|lfs.*safetensors/.test(path))).toEqual([]);
  } finally {
    await hub.close();
  }
  const again = await plan(args);
  expect(again.json().data, again.stderr).toMatchObject({ verdict: 'fits', bytesPerToken: 16 * 4 * 2 * 128 * 2 });
});

test.each([
  {
    name: 'a model that is nowhere',
    args: ['plan', '--engine', 'sglang', '--model', 'nobody/nothing'],
    says: /nobody\/nothing cannot be had/,
    code: 3,
  },
  {
    name: 'a GPU nobody knows',
    args: ['plan', '--engine', 'sglang', '--model', 'moonshotai/Kimi-K2.5', '--gpu', 'H10000'],
    says: /No GPU of the name/,
    code: 2,
  },
  { name: 'facts that are no JSON', args: [...STORY, '--facts', '{weights: 3}'], says: /--facts cannot be read/, code: 2 },
  { name: 'a fact of another name', args: [...STORY, '--facts', '{"weights":3}'], says: /weights is no fact/, code: 2 },
  { name: 'a log that is not there', args: [...STORY, '--log', 'no.log'], says: /There is no log no\.log/, code: 2 },
  { name: 'a sweep without values', args: [...STORY, '--sweep', 'tp'], says: /--sweep tp is not FLAG=VALUES/, code: 2 },
  { name: 'lengths of no known kind', args: [...STORY, '--lengths', 'normal:3'], says: /none of: lognormal/, code: 2 },
  { name: 'no engine at all', args: ['plan', '--model', 'm'], says: /needs --engine/, code: 2 },
  { name: 'a run that has not begun as workload', args: [...STORY, '--workload', 'run.yaml'], says: /has not begun/, code: 2 },
])('says what to type: $name', async ({ args, says, code }) => {
  const { plan } = storyProject();
  const result = await plan(args);
  expect(result.stderr).toMatch(says);
  expect(result.stderr).toMatch(/aerie|--|Write|Give|Check/);
  expect(result.stderr).not.toMatch(/\n\s+at /);
  expect(result.code).toBe(code);
});
