/**
 * Whether memory of the GPUs is back, and who holds it: real processes, and a lookalike of nvidia-smi in the place of cards.
 * Linux only, as what it proves.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { childrenOf, until } from '../../test/support/child-processes.ts';
import { type FakeCards, installFakeNvidiaSmi } from '../../test/support/fake-nvidia-smi.ts';
import { launchOf, readLog } from '../../test/support/machine-bench.ts';
import { quoteShell } from '../base/quote-shell.ts';
import { systemClock as clock, nodeHost } from '../host/node-host.ts';
import { localMachine } from '../machine/local/local-machine.ts';
import type { GpuReading, Machine } from '../machine/machine.ts';
import { writeHold } from '../programs/lookalike/gpu-state.ts';
import { describeHolders } from './describe-holders.ts';
import { awaitMemory, type MemoryOutcome } from './gpu-memory.ts';
import { killHolder } from './kill-holder.ts';
import { stopLaunch } from './stop-launch.ts';

const support = (name: string) => fileURLToPath(new URL(`../../test/support/${name}`, import.meta.url));

interface Bench {
  readonly machine: Machine;
  readonly folder: string;
  readonly cards: FakeCards;
  readonly baseline: readonly GpuReading[];
}

async function openBench(): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-memory-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const cards = installFakeNvidiaSmi(folder, { count: 2, totalMiB: 97_887, baseMiB: 500 });
  const host = nodeHost();
  const machine = localMachine({ ...host, env: { ...host.env, ...cards.env } });
  const look = await machine.gpus();
  expect(look).toMatchObject({ kind: 'read', gpus: [{ usedMiB: 500, utilisationPercent: 0 }, { index: 1 }] });
  return { machine, folder, cards, baseline: look.kind === 'read' ? look.gpus : [] };
}

interface HolderShape {
  readonly mib?: readonly number[];
  readonly deaf?: boolean;
  readonly keepsAfterDeath?: number | true | 'until-reaped';
  readonly child?: HolderShape;
  readonly reaps?: boolean;
}

/** Somebody else's process, which Aerie did not start. */
async function startStranger({ cards }: Bench, shape: HolderShape): Promise<ChildProcess & { readonly pid: number }> {
  const args = [support('gpu-holder.mjs'), JSON.stringify(shape)];
  const child = spawn(process.execPath, args, { env: { ...process.env, ...cards.env }, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return Object.assign(child, { pid: child.pid ?? 0 });
}

const look = ({ machine, baseline }: Bench, withinMs: number, ours?: string) =>
  awaitMemory({ machine, baseline, clock, withinMs, ours });

const sentencesOf = (outcome: MemoryOutcome) => (outcome.kind === 'held' ? describeHolders(outcome) : []);

describe.runIf(process.platform === 'linux')('memory of the GPUs', () => {
  test('is free where nobody holds any, and where there are no cards', async () => {
    const bench = await openBench();
    expect(await look(bench, 0)).toEqual({ kind: 'free' });
    expect(await look({ ...bench, baseline: [] }, 0)).toEqual({ kind: 'free' });
    const small = await startStranger(bench, { mib: [512, 0] });
    expect(await look(bench, 0)).toEqual({ kind: 'free' }); // half a GiB is no engine
    small.kill('SIGKILL');
  });

  test('comes back after a deaf launch was stopped, also slowly', async () => {
    const bench = await openBench();
    const { machine, cards } = bench;
    const words = [
      process.execPath,
      support('gpu-holder.mjs'),
      JSON.stringify({ mib: [70_000, 70_000], deaf: true, keepsAfterDeath: 1_000 }),
    ];
    const launch = launchOf(bench, words.map(quoteShell).join(' '), { env: cards.env });
    const identity = await machine.start(launch);
    await until(async () => (await readLog(machine, launch)).includes('holding'));
    const held = await look(bench, 0, launch.marker);
    expect(held).toMatchObject({ kind: 'held', gpus: [{ index: 0, overMiB: 70_000 }, { index: 1 }], ours: [identity.pid] });
    expect(sentencesOf(held).join('\n')).toContain('It belongs to the launch that was stopped');
    const stopped = await stopLaunch({ machine, launch: { ...launch, identity }, clock, termGraceMs: 200, killGraceMs: 30_000 });
    expect(stopped).toMatchObject({ isStopped: true, exitStatus: 137, left: [] });
    expect(await look(bench, 60_000, launch.marker)).toEqual({ kind: 'free' });
  });

  test('of a stranger: it is named, and ended only when its pid is given', async () => {
    const bench = await openBench();
    const { machine, baseline } = bench;
    const stranger = await startStranger(bench, { mib: [10_240], deaf: true });
    const held = await look(bench, 0, 'some-launch');
    expect(held).toMatchObject({ gpus: [{ index: 0, usedMiB: 10_740, baselineMiB: 500, overMiB: 10_240 }], ours: [] });
    expect(sentencesOf(held)).toEqual([
      'GPU 0 uses 10,740 MiB, 10,240 MiB above its baseline of 500 MiB.',
      expect.stringMatching(
        new RegExp(
          `gpu-holder.*\\(pid ${stranger.pid}, user \\w+\\) holds 10,240 MiB of GPU 0\\. To end it: {2}kill ${stranger.pid} .*--kill-holder ${stranger.pid}`,
        ),
      ),
      ...(await unseen(machine)),
    ]);
    const graces = { termGraceMs: 200, killGraceMs: 30_000, withinMs: 30_000 };
    const other = await killHolder({ machine, pid: process.pid, baseline, clock, ...graces });
    expect(other).toMatchObject({ kind: 'not-a-holder', holders: [{ pid: stranger.pid }] });
    expect(await killHolder({ machine, pid: stranger.pid, baseline, clock, ...graces })).toMatchObject({
      ...{ kind: 'ended', by: 'SIGKILL', holder: { pid: stranger.pid, usedMiB: 10_240 }, memory: { kind: 'free' } },
    });
  });

  test('of a zombie: its parent is named, and a signal is not tried', async () => {
    const bench = await openBench();
    const { machine, baseline } = bench;
    const parent = await startStranger(bench, { child: { mib: [0, 30_000], keepsAfterDeath: 'until-reaped' }, reaps: false });
    const [zombie = 0] = childrenOf(parent.pid);
    process.kill(zombie, 'SIGKILL');
    await until(async () => (await machine.holders()).holders[0]?.by === 'zombie');
    const [, sentence] = sentencesOf(await look(bench, 0));
    expect(sentence).toContain(`(pid ${zombie}, user`);
    expect(sentence).toContain('has ended and holds 30,000 MiB of GPU 1 still. Only its parent can reap it: ');
    expect(sentence).toContain(`pid ${parent.pid}, ${process.execPath} ${support('gpu-holder.mjs')}`);
    const graces = { termGraceMs: 0, killGraceMs: 0, withinMs: 0 };
    const outcome = await killHolder({ machine, pid: zombie, baseline, clock, ...graces });
    expect(outcome).toMatchObject({ kind: 'out-of-reach', holder: { pid: zombie } });
    parent.kill('SIGKILL'); // init takes the zombie over
    expect(await look(bench, 60_000)).toEqual({ kind: 'free' });
  });

  test('of a process that is nobody here: the pid of the host is told, and nothing is tried', async () => {
    const bench = await openBench();
    const { machine, baseline, cards } = bench;
    // One pid that no process here can have (above PID_MAX_LIMIT), and one that is this very process here.
    for (const pid of [4_194_305, process.pid]) {
      writeHold(cards.stateFolder, { pid, startTicks: 1 }, { name: '[Not Found]', gpus: { 0: 20_000 }, keepsAfterDeath: true });
      const outcome = await killHolder({ machine, pid, baseline, clock, termGraceMs: 0, killGraceMs: 0, withinMs: 0 });
      expect(outcome).toMatchObject({ kind: 'out-of-reach', holder: { pid, identity: undefined } });
      expect(sentencesOf(await look(bench, 0)).join('\n')).toContain(
        `A process that is not in this pid namespace, pid ${pid} on the host, holds 20,000 MiB of GPU 0. It cannot be ended from here`,
      );
      rmSync(join(cards.stateFolder, 'holds'), { recursive: true });
    }
  });

  test("that no listed process explains is somebody else's, and said so", async () => {
    const bench = await openBench();
    const low = bench.baseline.map((reading) => ({ ...reading, usedMiB: -2_000 })); // as though it had been lower before
    const text = sentencesOf(await look({ ...bench, baseline: low }, 0)).join('\n');
    expect(text).toContain('Nobody who can be seen from here is said to hold it');
    expect(text).toContain('ask the operator of the host');
  });

  test('cannot be told when nvidia-smi fails, or has lost a card', async () => {
    const bench = await openBench();
    const lost = [...bench.baseline, { index: 2, uuid: 'GPU-lost', name: '', usedMiB: 0, totalMiB: 1, utilisationPercent: 0 }];
    expect(sentencesOf(await look({ ...bench, baseline: lost }, 0))[0]).toContain(
      'Not seen: memory of GPU 2: it was there before',
    );
    rmSync(bench.cards.stateFolder, { recursive: true });
    const failed = await look(bench, 0);
    expect(failed).toMatchObject({ kind: 'held', gpus: [] });
    expect(sentencesOf(failed)[0]).toContain('Not seen: memory of the GPUs: nvidia-smi ended with 9');
  });
});

/** As on this machine, whoever runs the tests: the container's edge, other users' processes. */
async function unseen(machine: Machine): Promise<string[]> {
  return (await machine.holders()).unknown.map((what) => `Not seen: ${what}`);
}

const UNSHARE = ['-Urpf', '--mount-proc'];

/** Why no pid namespace can be made here; undefined where one can. */
function noNamespaces(): string | undefined {
  const tried = spawnSync('unshare', [...UNSHARE, 'true'], { encoding: 'utf8' });
  return tried.status === 0 ? undefined : tried.stderr || 'there is no unshare';
}

describe.runIf(process.platform === 'linux' && noNamespaces() === undefined)('from another pid namespace', () => {
  test('a holder outside is a pid of the host, and free again when it has ended', async () => {
    const bench = await openBench();
    const outside = await startStranger(bench, { mib: [0, 40_000], keepsAfterDeath: true }); // not seen from within, so it says that it holds
    const inside = () => {
      const args = [...UNSHARE, process.execPath, support('look-at-memory.mjs'), JSON.stringify(bench.baseline)];
      const result = spawnSync('unshare', args, { env: { ...process.env, ...bench.cards.env }, encoding: 'utf8' });
      expect(result.stderr).toBe('');
      return JSON.parse(result.stdout) as { memory: MemoryOutcome; sentences: string[] };
    };
    const { memory, sentences } = inside();
    expect(memory).toMatchObject({
      kind: 'held',
      gpus: [{ index: 1, overMiB: 40_000 }],
      holders: [{ pid: outside.pid, gpuUuid: bench.baseline[1]?.uuid }],
    });
    expect(memory.kind === 'held' && memory.holders[0]).not.toHaveProperty('identity');
    expect(sentences.join('\n')).toContain(`pid ${outside.pid} on the host, holds 40,000 MiB of GPU 1`);
    expect(sentences.at(-1)).toContain(
      'Not seen: processes outside this container. On its host:  nvidia-smi --query-compute-apps',
    );
    rmSync(join(bench.cards.stateFolder, 'holds'), { recursive: true });
    expect(inside().memory).toEqual({ kind: 'free' });
  });
});
