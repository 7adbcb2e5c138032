import { expect, test } from 'vitest';
import { HELP } from '../../../test/support/launcher-help.ts';
import { findGpu } from '../../capacity/gpus.ts';
import { findKnownModel } from '../../capacity/known-models.ts';
import { planLaunch } from '../../capacity/plan-launch.ts';
import { readFacts } from '../../capacity/read-facts.ts';
import { readModelConfig } from '../../capacity/read-model-config.ts';
import { type LaunchFlags, SGLANG_LINE, wordsOf } from '../../engine/launching.ts';
import type { GpuReading, Holder } from '../../machine/machine.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { judgePreflight } from './preflight.ts';
import type { PreflightCheck, PreflightInput } from './preflight-input.ts';
import { isHubName, modelOf } from './preflight-model.ts';
import { policyBeforeLaunch } from './preflight-plan.ts';
import { portsOf } from './preflight-ports.ts';

const known = findKnownModel('moonshotai/Kimi-K2.5');
if (known === undefined) throw new Error('the table has no Kimi-K2.5');
const shape = readModelConfig(known);
const gpu = findGpu('NVIDIA RTX PRO 6000 Blackwell Server Edition');
const measured = { facts: readFacts({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04 }).facts, source: 'the last launch' };
const NO_FP8: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'FP8 KV degrades this model', by: 'model owner' };
const STORY = { tp: 8, 'mem-fraction-static': 0.88, 'kv-cache-dtype': 'bf16', port: 8000 };

const planOf = (flags: LaunchFlags, version = '0.5.8') =>
  planLaunch({ engine: 'sglang', version, shape, gpu, flags: wordsOf(flags, SGLANG_LINE), observations: [measured] });
const cardOf = (index: number, usedMiB = 4): GpuReading => ({
  index,
  uuid: `GPU-${index}`,
  name: 'RTX PRO 6000',
  usedMiB,
  totalMiB: 97_887,
  utilisationPercent: 0,
});
const cards = (count: number) => Array.from({ length: count }, (_, index) => cardOf(index));
const holderOf = (holder: Partial<Holder>): Holder => ({
  ...{
    pid: 4711,
    identity: { pid: 4711, startTicks: 1, bootId: 'b', command: 'python3 -m x' },
    name: 'sglang::scheduler_TP3',
    user: 'root',
  },
  ...{ usedMiB: 61_000, gpuUuid: 'GPU-3', by: 'compute-apps', parent: undefined, container: '' },
  ...holder,
});

function ask(changes: Partial<PreflightInput>, flags: LaunchFlags = STORY, policy: readonly PolicyRule[] = [NO_FP8]) {
  const plan = 'plan' in changes ? changes.plan : planOf(flags);
  return judgePreflight({
    ...{ engine: 'sglang', flags, plan, policy: policyBeforeLaunch({ flags: flags as Record<string, number> }, plan, policy) },
    resources: { memoryAvailableBytes: 1200 * 2 ** 30, sharedMemoryFreeBytes: 64 * 2 ** 30, diskFreeBytes: [] },
    ...{ gpus: { kind: 'read', gpus: cards(8) }, holders: undefined, baselineMiB: undefined, visibleGpus: undefined },
    ports: [{ port: 8000, what: 'HTTP', owner: undefined }],
    ...{ help: HELP, downloadBytes: 0, diskFreeBytes: undefined, modelPath: undefined },
    logDisk: { folder: '/runs/logs', freeBytes: 2 ** 40 },
    ...changes,
  });
}

function find(
  changes: Partial<PreflightInput>,
  name: PreflightCheck['name'],
  flags?: LaunchFlags,
  policy?: readonly PolicyRule[],
) {
  const found = ask(changes, flags, policy).checks.find((check) => check.name === name);
  if (found === undefined) throw new Error(`no check ${name}`);
  return found;
}

test('the story’s launch on its own machine: every question is answered with yes', () => {
  const { checks, isRefused } = ask({});
  expect(checks.map(({ name, verdict }) => [name, verdict])).toEqual([
    ...['port', 'gpus', 'gpu memory', 'host memory', 'shared memory', 'disk', 'log', 'flags', 'plan', 'policy'].map((name) => [
      name,
      'ok',
    ]),
  ]);
  expect(isRefused).toBe(false);
  expect(find({}, 'plan').says).toMatch(/^predicted: a pool of 159\d\d\d tokens/);
});

test('nothing that could not be looked at is ok', () => {
  const { checks, isRefused } = ask(
    {
      ...{ plan: undefined, help: undefined, downloadBytes: undefined, gpus: { kind: 'absent' }, ports: [] },
      ...{ modelPath: { path: '/models/k', isThere: undefined }, logDisk: { folder: '/runs/logs', freeBytes: undefined } },
      resources: { memoryAvailableBytes: undefined, sharedMemoryFreeBytes: undefined, diskFreeBytes: [] },
    },
    { tp: 8 },
  );
  expect(checks.map(({ verdict }) => verdict)).toEqual(checks.map(() => 'unknown'));
  expect(isRefused).toBe(false);
});

test('a model that is not there is refused before the minutes of an import, and a log without room too', () => {
  const missing = find({ modelPath: { path: '/models/k', isThere: false } }, 'model');
  expect([missing.verdict, missing.says]).toEqual(['refused', 'there is no /models/k that this user can see']);
  expect(find({ modelPath: { path: '/models/k', isThere: true } }, 'model').verdict).toBe('ok');
  const logDisk = (freeBytes: number) => find({ logDisk: { folder: '/box/logs', freeBytes } }, 'log');
  expect(logDisk(0)).toMatchObject({ verdict: 'refused', says: '0 B are free at /box/logs, where its log is written' });
  expect(logDisk(2 ** 20).verdict).toBe('warning');
  expect(logDisk(2 ** 28).verdict).toBe('ok');
});

test.each<[PreflightInput['engine'], LaunchFlags, string]>([
  ['sglang', { tp: 8 }, 'org/m'],
  ['sglang', { 'model-path': '/models/m', 'served-model-name': 'org/m' }, '/models/m'],
  ['vllm', { model: '/models/m' }, '/models/m'],
])('the model that %s is given with %j', (engine, flags, expected) => {
  expect(modelOf(engine, flags, 'org/m')).toBe(expected);
  expect(isHubName(expected)).toBe(expected === 'org/m');
});

test('a port that is held names its holder, or says that nobody can be seen', () => {
  const owner = { port: 8000, pid: 99, command: 'python3 -m http.server' };
  const held = find({ ports: [{ port: 8000, what: 'HTTP', owner }] }, 'port');
  expect(held).toMatchObject({ verdict: 'refused', says: 'port 8000 (HTTP) is held by pid 99 (python3 -m http.server)' });
  const unseen = find(
    { ports: [{ port: 5000, what: 'rendezvous', owner: { port: 5000, pid: undefined, command: '' } }] },
    'port',
  );
  expect(unseen.says).toContain('someone who may not be seen');
  expect(unseen.remedy).toContain("sudo ss -ltnp 'sport = :5000'");
});

test.each<[LaunchFlags, string]>([
  [{ port: 8000 }, '8000 HTTP'],
  [{ port: 8000, 'dist-init-addr': '127.0.0.1:5000', 'nccl-port': 5001 }, '8000 HTTP, 5000 rendezvous, 5001 NCCL'],
  [{ port: 8000, 'enable-dp-attention': true }, '8000 HTTP, 8233 rendezvous'],
  [{}, ''],
])('ports of SGLang with %j', (flags, expected) => {
  expect(
    portsOf('sglang', flags)
      .map(({ port, what }) => `${port} ${what}`)
      .join(', '),
  ).toBe(expected);
});

test('ports of vLLM: those that are written, and those of several machines', () => {
  const said = (flags: LaunchFlags) => portsOf('vllm', flags).map(({ port }) => port);
  expect(said({ port: 8000, dp: 2 })).toEqual([8000]);
  expect(said({ port: 8000, dp: 2, data_parallel_rpc_port: 13_000 })).toEqual([8000, 13_000]);
  expect(said({ port: 8000, dp: 2, nnodes: 2 })).toEqual([8000, 29_550, 29_501]);
});

test('too few GPUs, or a busy one, is refused with its holder', () => {
  expect(find({ gpus: { kind: 'read', gpus: cards(4) } }, 'gpus')).toMatchObject({
    verdict: 'refused',
    says: expect.stringContaining('take 8 GPUs and 4 GPUs'),
  });
  expect(find({ visibleGpus: [0, 1, 2] }, 'gpus').says).toContain('3 GPUs are visible');
  const busy = { kind: 'read', gpus: cards(8).map((card) => (card.index === 3 ? cardOf(3, 61_500) : card)) } as const;
  const held = find({ gpus: busy, holders: { holders: [holderOf({})], unknown: [] } }, 'gpu memory');
  expect(held).toMatchObject({
    verdict: 'refused',
    says: 'GPU 3 has 61500 MiB in use, held by pid 4711 (sglang::scheduler_TP3 of root, 61000 MiB)',
  });
  const outside = find(
    {
      gpus: busy,
      holders: { holders: [holderOf({ identity: undefined, container: '' })], unknown: ['sudo fuser -v /dev/nvidia*'] },
    },
    'gpu memory',
  );
  expect(outside.says).toContain('a pid of the host');
  expect(outside.remedy).toContain('sudo fuser');
  expect(find({ gpus: busy }, 'gpu memory').says).toContain('nobody who can be seen from here');
  const allBusy = { kind: 'read', gpus: Array.from({ length: 8 }, (_, index) => cardOf(index, 61_500)) } as const;
  const each = allBusy.gpus.map(({ index }) => holderOf({ pid: 5000 + index, gpuUuid: `GPU-${index}` }));
  const all = find({ gpus: allBusy, holders: { holders: each.slice(0, 7), unknown: ['x'] } }, 'gpu memory');
  expect(all.says).toBe(
    'GPU 0 has 61500 MiB in use, held by pid 5000 (sglang::scheduler_TP3 of root, 61000 MiB); ' +
      '7 more GPUs are held: 1 by pid 5001, 2 by pid 5002, 3 by pid 5003, 4 by pid 5004, 5 by pid 5005, 6 by pid 5006, 7 by nobody who can be seen',
  );
  expect(all.remedy).toMatch(/ Not seen: x$/);
  // A GPU that the launch does not take may be as busy as it likes.
  expect(find({ gpus: busy }, 'gpu memory', { tp: 2 }).verdict).toBe('ok');
  expect(find({ gpus: busy }, 'gpu memory', { tp: 2, 'base-gpu-id': 2 }).verdict).toBe('refused');
});

test.each([
  [undefined, 600, 'ok'],
  [undefined, 601, 'refused'],
  [4, 516, 'ok'],
  [4, 517, 'refused'],
  [900, 1400, 'ok'],
] as const)('baseline %s MiB, %s in use: %s', (baseline, used, verdict) => {
  const gpus = { kind: 'read', gpus: [cardOf(0, used)] } as const;
  const baselineMiB = baseline === undefined ? undefined : { 0: baseline };
  expect(find({ gpus, baselineMiB }, 'gpu memory', { tp: 1 }).verdict).toBe(verdict);
});

test('the hierarchical cache of all ranks must fit the host, which no rank checks for the others', () => {
  const flags = { ...STORY, 'enable-hierarchical-cache': true, 'hicache-size': 48 };
  const with_ = (gib: number) =>
    find(
      { resources: { memoryAvailableBytes: gib * 2 ** 30, sharedMemoryFreeBytes: undefined, diskFreeBytes: [] } },
      'host memory',
      flags,
    );
  // 8 × 48e9 B = 357.6 GiB, and 10e9 B of reserve.
  expect(with_(366)).toMatchObject({
    verdict: 'refused',
    says: expect.stringContaining('44.7 GiB for each of 8 ranks, 357.6 GiB in all'),
  });
  expect(with_(366).remedy).toContain('hicache-size to 47');
  expect(with_(400)).toMatchObject({ verdict: 'warning', says: expect.stringContaining('do not stay in the page cache') });
  expect(with_(1200).verdict).toBe('ok');
});

test('docker’s 64 MB of shared memory are little for ranks that speak through it', () => {
  const resources = { memoryAvailableBytes: undefined, sharedMemoryFreeBytes: 64 * 2 ** 20, diskFreeBytes: [] };
  expect(find({ resources }, 'shared memory')).toMatchObject({
    verdict: 'warning',
    remedy: expect.stringContaining('--shm-size 32g or --ipc=host'),
  });
  expect(find({ resources }, 'shared memory', { tp: 1 }).verdict).toBe('ok');
});

test.each([
  [0, undefined, 'ok'],
  [600e9, 700e9, 'ok'],
  [600e9, 605e9, 'warning'],
  [600e9, 500e9, 'refused'],
  [600e9, undefined, 'unknown'],
] as const)('a download of %s bytes with %s free: %s', (downloadBytes, diskFreeBytes, verdict) => {
  expect(find({ downloadBytes, diskFreeBytes }, 'disk').verdict).toBe(verdict);
});

test('a flag that the launcher does not list is refused with the nearest; without its list a slip is a warning', () => {
  const flags = { ...STORY, 'mem-fraction-statc': 0.88 };
  expect(find({}, 'flags', flags)).toMatchObject({
    verdict: 'refused',
    says: '--mem-fraction-statc is no flag of this version (did you mean --mem-fraction-static?)',
  });
  expect(find({ help: undefined }, 'flags', flags)).toMatchObject({
    verdict: 'warning',
    says: expect.stringContaining('did you mean --mem-fraction-static?'),
  });
  expect(find({ help: 'command not found' }, 'flags').verdict).toBe('unknown');
  expect(find({}, 'flags', { ...STORY, 'enable-metr': true }).says).toContain('the beginning of several flags');
});

test('what arithmetic expects to fail is a warning with its numbers', () => {
  expect(find({}, 'plan', { ...STORY, 'mem-fraction-static': 0.93 })).toMatchObject({
    verdict: 'warning',
    says: expect.stringMatching(/it will start and die under load: 0\.\d\d GiB are left/),
  });
  expect(find({}, 'plan', { ...STORY, 'mem-fraction-static': 0.7 }).says).toContain('will not start');
});

test('FP8 proposed by an edit is refused with the owner’s words', () => {
  const refused = find({}, 'policy', { ...STORY, 'kv-cache-dtype': 'fp8_e4m3', 'mem-fraction-static': 0.9 });
  expect(refused).toMatchObject({
    verdict: 'refused',
    says: expect.stringContaining('8 bits per element'),
    remedy: expect.stringContaining('FP8 KV degrades this model (decided by model owner)'),
  });
});

test('an engine that turns 16 bits into 8 is refused before it starts; auto without a plan waits for the server', () => {
  const dsa = findKnownModel('deepseek-ai/DeepSeek-V3.2');
  if (dsa === undefined) throw new Error('the table has no DeepSeek-V3.2');
  const flags = { tp: 8, 'kv-cache-dtype': 'bf16' };
  const input = { engine: 'sglang', shape: readModelConfig(dsa), gpu, flags: wordsOf(flags, SGLANG_LINE) } as const;
  const plan = planLaunch({ ...input, version: '0.5.4' });
  expect(find({ plan }, 'policy', flags)).toMatchObject({
    verdict: 'refused',
    says: expect.stringContaining('whatever the flag says'),
  });
  expect(find({ plan: undefined }, 'policy', { tp: 8 }).verdict).toBe('unknown');
  expect(find({ plan: undefined }, 'policy', { 'kv-cache-dtype': 'fp8' }).verdict).toBe('refused');
});

test('a rule about what only the running server can tell is a warning before it', () => {
  const rule: PolicyRule = { min: { freeGiB: 6 }, because: 'long prompts come', by: 'operations' };
  expect(find({}, 'policy', STORY, [rule])).toMatchObject({ verdict: 'warning' });
  const fraction: PolicyRule = { max: { memoryFraction: 0.85 }, because: 'a second process needs room', by: 'operations' };
  expect(find({}, 'policy', STORY, [fraction])).toMatchObject({ verdict: 'refused' });
});
