/** How launches of the lookalike end: by their own arithmetic, on cue, and when they are told to. */
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verdictOf } from '../support/diagnose-log.ts';
import { freePort, isAlive, KIMI, STORY, startLaunch } from '../support/launch-bench.ts';
import { until } from '../support/lookalike-bench.ts';

const QWEN = ['--model-path', 'Qwen/Qwen3-8B'];
const H100 = { machine: { gpu: 'H100' } };
const KILLED = { code: null, signal: 'SIGKILL' };

describe('by its own arithmetic', () => {
  test.each([
    ['sglang@0.5.4', 'Not enough memory. Please try to increase --mem-fraction-static.'],
    ['sglang@0.5.9', 'Current value: self.server_args.mem_fraction_static=0.75'],
    ['sglang@0.5.18', 'Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.75'],
  ])('%s: weights above the fraction', async (as, words) => {
    const launch = await startLaunch({ as, scenario: STORY, flags: [...KIMI, '--mem-fraction-static', '0.75'] });
    expect(await launch.exited).toEqual(KILLED);
    expect(launch.log()).toContain(words);
    const { cause, state, remedy } = verdictOf(launch.log());
    expect({ cause, state }).toEqual({ cause: 'weights-exceed-static-fraction', state: 'crashed' });
    expect(Number(remedy.value)).toBeGreaterThan(0.769); // 72.33 of 94.04
  });

  test.each([
    ['graphs that do not fit', [...KIMI, '--mem-fraction-static', '0.95'], 'cuda-graph-capture-oom', 'cuda-graph-capture'],
    ['a table that does not fit', [...KIMI, '--mem-fraction-static', '0.99'], 'req-to-token-table-oom', 'kv-pool-allocation'],
    [
      'weights beyond the card',
      ['--model-path', 'moonshotai/Kimi-K2.5', '--tp', '4'],
      'weights-exceed-gpu-memory',
      'weight-loading',
    ],
    [
      'a hierarchical cache beyond the host',
      [...KIMI, '--mem-fraction-static', '0.88', '--enable-hierarchical-cache', '--hicache-size', '2000'],
      'hicache-host-memory',
      'kv-pool-allocation',
    ],
    [
      'eight caches that fit one by one',
      [...KIMI, '--mem-fraction-static', '0.88', '--enable-hierarchical-cache', '--hicache-size', '300'],
      'host-ram-oom-kill',
      'kv-pool-allocation',
    ],
  ])('%s', async (_, flags, cause, phase) => {
    const { machine } = STORY;
    const scenario = flags.includes('4') ? {} : { machine };
    const launch = await startLaunch({ scenario, flags });
    expect(await launch.exited).toEqual(KILLED);
    expect(verdictOf(launch.log())).toMatchObject({ state: 'crashed', cause, phase });
  });

  test('a port that is taken: found after the whole load by SGLang, at once by vLLM', async () => {
    const holder = createServer();
    onTestFinished(() => void holder.close());
    const port = await freePort();
    await new Promise<void>((resolve) => void holder.listen(port, '127.0.0.1', resolve));
    const sglang = await startLaunch({ scenario: H100, flags: QWEN, port });
    expect((await sglang.exited).code).toBe(1);
    expect(sglang.log()).toContain('max_total_num_tokens=');
    expect(verdictOf(sglang.log())).toMatchObject({ state: 'crashed', cause: 'port-in-use' });
    const vllm = await startLaunch({ as: 'vllm@0.16.0', scenario: H100, flags: ['Qwen/Qwen3-8B'], port });
    expect((await vllm.exited).code).toBe(1);
    expect(vllm.log()).not.toContain('Starting to load model');
    expect(verdictOf(vllm.log()).state).toBe('crashed');
  });

  test('a second launch at the same rendezvous', async () => {
    const address = ['--dist-init-addr', `127.0.0.1:${await freePort()}`];
    const first = await startLaunch({ scenario: H100, flags: [...QWEN, ...address] });
    await first.until('Load weight begin');
    const second = await startLaunch({ scenario: H100, flags: [...QWEN, ...address] });
    expect(await second.exited).toEqual(KILLED);
    expect(verdictOf(second.log())).toMatchObject({ state: 'crashed', cause: 'port-in-use' });
  });

  test.each([
    [
      'sglang@0.5.8',
      ['--model-path', 'x', '--tp', '8', '--enable-prefix-cachingg'],
      'unrecognized arguments: --enable-prefix-cachingg',
    ],
    [
      'sglang@0.5.8',
      ['--model-path', 'x', '--cuda-graph-max-bs-decode', '8'],
      'unrecognized arguments: --cuda-graph-max-bs-decode',
    ],
    ['sglang@0.5.8', ['--tp', '8'], 'the following arguments are required: --model-path/--model'],
    ['vllm@0.16.0', ['Qwen/Qwen3-8B', '--tp', '2'], 'unrecognized arguments'],
    ['vllm@0.16.0', ['Qwen/Qwen3-8B', '--max-model-len', 'long'], 'argument --max-model-len: invalid value'],
  ])('%s %s is refused as argparse does', async (as, flags, words) => {
    const launch = await startLaunch({ as, flags });
    expect((await launch.exited).code).toBe(2);
    expect(launch.log()).toContain(words);
    expect(verdictOf(launch.log())).toMatchObject({ state: 'crashed', cause: 'unknown-flag', phase: 'argument-parsing' });
  });

  test('its help names each flag that it takes, as that version spells it', async () => {
    const [older, newer] = await Promise.all(
      ['sglang@0.5.8', 'sglang@0.5.18'].map((as) => startLaunch({ as, flags: ['--help'] })),
    );
    expect((await older?.exited)?.code).toBe(0);
    await newer?.exited;
    expect(older?.log()).toMatch(/^usage: launch_server\.py \[-h\]/);
    expect(older?.log()).toMatch(/^ {2}--tp-size TP_SIZE, --tensor-parallel-size TP_SIZE, --tp TP_SIZE$/m);
    expect(older?.log()).not.toContain('--cuda-graph-max-bs-decode');
    expect(newer?.log()).toContain('--cuda-graph-max-bs-decode');
  });
});

describe('on cue', () => {
  test('a hang says nothing more and lives; the process group goes on with the variable that cures it', async () => {
    const scenario = { ...STORY, hangsUnlessEnv: 'NCCL_P2P_DISABLE' };
    const flags = [...KIMI, '--mem-fraction-static', '0.88'];
    const hung = await startLaunch({ scenario, flags });
    await hung.until('TP7] sglang is using nccl');
    const cured = await startLaunch({ scenario, flags, env: { NCCL_P2P_DISABLE: '1' } });
    await cured.until('fired up');
    expect(isAlive(hung.pid)).toBe(true);
    expect(hung.log().trimEnd()).toMatch(/sglang is using nccl==[\d.]+$/);
    expect(verdictOf(hung.log(), true)).toMatchObject({ state: 'hung', cause: 'nccl-init-hang', phase: 'distributed-init' });
  });

  test.each([
    [{ do: 'oom' }, 'weight-loading', 'weights-exceed-gpu-memory'],
    [{ do: 'oom' }, 'cuda-graph-capture', 'cuda-graph-capture-oom'],
    [{ do: 'fail', text: 'OSError: [Errno 28] No space left on device' }, 'weight-loading', 'disk-full'],
  ])('%o in %s', async (fault, phase, cause) => {
    const launch = await startLaunch({ scenario: { ...H100, faults: [{ ...fault, when: { phase } }] }, flags: QWEN });
    expect(await launch.exited).toEqual(KILLED);
    expect(verdictOf(launch.log())).toMatchObject({ state: 'crashed', cause, phase });
  });

  test('a sudden death without a word, in one life alone', async () => {
    const once = join(tmpdir(), `aerie-once-${process.pid}-${Date.now()}`);
    onTestFinished(() => rmSync(once, { force: true }));
    const scenario = { ...H100, faults: [{ when: { phase: 'weight-loading', afterMs: 3000 }, do: 'die', once }] };
    const first = await startLaunch({ scenario, flags: QWEN });
    const ranks = first.ranks;
    await first.until('Load weight begin');
    expect(await first.exited).toEqual(KILLED);
    expect(first.log().trimEnd()).toMatch(/(avail mem=[\d.]+ GB|it\/s\])$/);
    expect(ranks()).toEqual([]);
    const second = await startLaunch({ scenario, flags: QWEN });
    await second.until('fired up');
  });

  test('a rank that is killed: its parent says so in the start, from 0.5.10 on at work, and before lives on as a zombie', async () => {
    for (const [as, words, cause] of [
      ['sglang@0.5.8', 'Rank 0 scheduler is dead. Please check', 'host-ram-oom-kill'],
      ['sglang@0.5.12', 'Rank 0 scheduler died during initialization (exit code: -9)', 'host-ram-oom-kill'],
    ] as const) {
      const launch = await startLaunch({
        as,
        scenario: { ...H100, phases: { 'weight-loading': { seconds: 9e6 } } },
        flags: QWEN,
      });
      await launch.until('Load weight begin');
      for (const { pid } of launch.ranks()) process.kill(pid, 'SIGKILL');
      expect(await launch.exited).toEqual(KILLED);
      expect(launch.log()).toContain(words);
      expect(verdictOf(launch.log())).toMatchObject({ state: 'crashed', cause });
    }
    const zombie = await startLaunch({ scenario: H100, flags: QWEN });
    await zombie.until('fired up');
    for (const { pid } of zombie.ranks()) process.kill(pid, 'SIGKILL');
    await until(() => zombie.ranks().length === 0);
    expect(isAlive(zombie.pid)).toBe(true);
    const watched = await startLaunch({ as: 'sglang@0.5.12', scenario: H100, flags: QWEN });
    await watched.until('fired up');
    for (const { pid } of watched.ranks()) process.kill(pid, 'SIGKILL');
    expect(await watched.exited).toEqual(KILLED);
    expect(watched.log()).toMatch(
      /Subprocess scheduler_0 \(pid=\d+\) crashed with exit code -9\. Triggering SIGQUIT for cleanup/,
    );
  });
});

describe('when it is told to', () => {
  test('SIGTERM in its start: at once, without a word, and its ranks with it', async () => {
    const launch = await startLaunch({ scenario: STORY, flags: [...KIMI, '--mem-fraction-static', '0.88'] });
    await launch.until('Load weight begin');
    const ranks = launch.ranks();
    expect(ranks.map(({ command }) => command)).toEqual(Array.from({ length: 8 }, (_, rank) => `sglang::scheduler_TP${rank}`));
    launch.kill('SIGTERM');
    expect(await launch.exited).toEqual({ code: null, signal: 'SIGTERM' });
    expect(launch.log()).not.toContain('SIGTERM');
    await until(() => ranks.every(({ pid }) => !isAlive(pid)));
  });

  test('SIGTERM at work: it drains without a deadline, health is 503, and then it kills its tree', async () => {
    const scenario = { ...H100, answerTokens: { kind: 'fixed', tokens: 20_000 } };
    const launch = await startLaunch({ scenario, flags: QWEN, clockRate: 60 });
    await launch.until('fired up');
    const answer = fetch(`http://127.0.0.1:${launch.port}/generate`, {
      method: 'POST',
      body: JSON.stringify({ text: 'x', sampling_params: { max_new_tokens: 20_000 } }),
    });
    await launch.until('Prefill batch, #new-seq: 1, #new-token: 1,');
    launch.kill('SIGTERM');
    await launch.until('Remaining number of requests 1.');
    expect(await launch.health()).toEqual({ status: 503, body: '' });
    expect((await answer).status).toBe(200);
    expect(await launch.exited).toEqual(KILLED);
    expect(launch.log()).toContain('Remaining number of requests 0.');
  });

  test('what ignores SIGTERM and leaves its ranks holds its name until it is killed', async () => {
    const scenario = { ...H100, ignoresSigterm: true, leavesRanks: true };
    const launch = await startLaunch({ scenario, flags: QWEN });
    await launch.until('fired up');
    const [rank] = launch.ranks();
    expect(rank?.command).toBe('sglang::scheduler_TP0 infinity');
    launch.kill('SIGTERM');
    process.kill(rank?.pid ?? 0, 'SIGTERM');
    launch.kill('SIGKILL');
    expect(await launch.exited).toEqual(KILLED);
    expect(readFileSync(`/proc/${rank?.pid}/stat`, 'utf8')).toMatch(/\) S /); // asleep, and there
  });
});
