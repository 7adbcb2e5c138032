/** Holders that only the machine around this one sees: named, told apart, and ended by identity there alone. Processes are real; what is inside and what is around are two nvidia-smi. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isAlive } from '../../test/support/child-processes.ts';
import { installFakeNvidiaSmi } from '../../test/support/fake-nvidia-smi.ts';
import { nodeHost, systemClock } from '../host/node-host.ts';
import { localMachine } from '../machine/local/local-machine.ts';
import type { Holder, Machine } from '../machine/machine.ts';
import { describeHolders } from './describe-holders.ts';
import { addOutside, findHolders, parseInnerPids, parseNames } from './find-holders.ts';
import { awaitMemory } from './gpu-memory.ts';
import { killHolder } from './kill-holder.ts';

const HOLDER = fileURLToPath(new URL('../../test/support/gpu-holder.mjs', import.meta.url));

interface Bench {
  /** Sees memory and nobody. */
  readonly machine: Machine;
  readonly outer: Machine;
  readonly hold: (mib: readonly number[]) => Promise<number>;
}

function openBench(): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-outer-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const cards = installFakeNvidiaSmi(folder, { count: 2, totalMiB: 97_887, baseMiB: 4 });
  const inside = join(folder, 'inside');
  mkdirSync(inside);
  // As in a container: the driver tells memory, and no pid.
  writeFileSync(
    join(inside, 'nvidia-smi'),
    `#!/bin/sh\ncase $1 in --query-compute-apps*) exit 0 ;; esac\nexec ${folder}/bin/nvidia-smi "$@"\n`,
  );
  chmodSync(join(inside, 'nvidia-smi'), 0o755);
  const host = nodeHost();
  const env = { ...host.env, ...cards.env };
  return {
    machine: localMachine({ ...host, env: { ...env, PATH: `${inside}:${cards.env.PATH}` } }),
    outer: { ...localMachine({ ...host, env }), name: 'root@host', isHere: false },
    async hold(mib) {
      const child = spawn(process.execPath, [HOLDER, JSON.stringify({ mib })], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      onTestFinished(() => void child.kill('SIGKILL'));
      await once(child.stdout, 'data');
      return child.pid ?? 0;
    },
  };
}

async function baselineOf(machine: Machine) {
  const look = await machine.gpus();
  return look.kind === 'read' ? look.gpus : [];
}

describe.runIf(process.platform === 'linux')('memory that is held from outside', () => {
  test('is nobody’s without the machine around, and it is said what to write', async () => {
    const { machine, hold } = openBench();
    const baseline = await baselineOf(machine);
    await hold([20_000]);
    const elsewhere = { ...machine, isHere: false };
    const memory = await awaitMemory({ machine: elsewhere, baseline, clock: systemClock, withinMs: 0, ours: undefined });
    if (memory.kind !== 'held') throw new Error('it is held');
    expect(memory.holders).toEqual([]);
    const says = describeHolders(memory).join('\n');
    expect(says).toContain('ask the operator of the host');
    expect(says).toContain('machine: { ssh: …, outer: ssh://root@HOST }');
  });

  test('has a name there, and the named one alone is ended there', async () => {
    const { machine, outer, hold } = openBench();
    const baseline = await baselineOf(machine);
    const [pid, other] = [await hold([20_000]), await hold([0, 30_000])];
    const asked = { machine, outer, baseline, clock: systemClock, ours: undefined };
    const memory = await awaitMemory({ ...asked, withinMs: 0 });
    if (memory.kind !== 'held') throw new Error('it is held');
    // Not the one inside: the one around it was asked, and says so itself where these tests run in a container.
    expect(memory.unknown.filter((what) => what.startsWith('processes outside this container'))).toEqual([]);
    const says = describeHolders(memory, outer.name);
    expect(says).toContainEqual(
      expect.stringMatching(
        new RegExp(`^On root@host: .*gpu-holder.mjs .*\\(pid ${pid}, user .*\\) holds 20,000 MiB of GPU 0\\.`),
      ),
    );
    expect(says.join('\n')).toContain(`--kill-holder ${pid}`);

    const graces = { termGraceMs: 10_000, killGraceMs: 10_000, withinMs: 300 };
    const stranger = await killHolder({ ...asked, ...graces, pid: process.pid });
    expect(stranger.kind).toBe('not-a-holder');
    const outcome = await killHolder({ ...asked, ...graces, pid });
    expect(outcome).toMatchObject({ kind: 'ended', by: 'SIGTERM', memory: { kind: 'held', gpus: [{ index: 1 }] } });
    expect([isAlive(pid), isAlive(other)]).toEqual([false, true]);
    expect(await killHolder({ ...asked, ...graces, pid: other })).toMatchObject({ kind: 'ended', memory: { kind: 'free' } });
  });

  test('without a machine around nothing is signalled', async () => {
    const { machine, hold } = openBench();
    const pid = await hold([20_000]);
    const graces = { termGraceMs: 0, killGraceMs: 0, withinMs: 0 };
    const outcome = await killHolder({ machine, baseline: [], clock: systemClock, pid, ...graces });
    expect([outcome.kind, isAlive(pid)]).toEqual(['not-a-holder', true]);
  });

  test('one that is seen from here is named once', async () => {
    const { outer, hold } = openBench();
    const pid = await hold([20_000]);
    const { holders } = await findHolders(outer, outer);
    expect(holders.map((holder) => [holder.pid, holder.outside])).toEqual([[pid, undefined]]);
  });
});

const holder = (over: Partial<Holder>): Holder => ({
  ...{ pid: 4242, identity: undefined, name: 'python', user: 'root', usedMiB: 10, gpuUuid: 'GPU-0', by: 'compute-apps' },
  ...{ parent: undefined, container: '', ...over },
});
const identity = { pid: 4242, startTicks: 1, bootId: 'b', command: 'vllm serve' };

test('the bare pid of the host gives way to who it is there', () => {
  const outside = holder({ container: 'lxc/102', outside: { machine: 'root@host', identity, innerPid: undefined } });
  const bare = { holders: [holder({})], unknown: ['processes outside this container. On its host: x', 'open files'] };
  const seen = addOutside(bare, { holders: [outside], unknown: ['on root@host: y'] });
  expect(seen).toEqual({ holders: [outside], unknown: ['open files', 'on root@host: y'] });
  const gpus = [{ index: 0, uuid: 'GPU-0', usedMiB: 14, baselineMiB: 4, overMiB: 10 }];
  const says = describeHolders({ kind: 'held', gpus, holders: seen.holders, ours: [4242], unknown: [] }, 'root@host');
  expect(says[1]).toBe(
    'On root@host: vllm serve (pid 4242, user root, in container lxc/102) holds 10 MiB of GPU 0. It belongs to the launch that was ' +
      'stopped. To let Aerie end it on root@host, once:  --kill-holder 4242',
  );
});

test('pids inside are of this namespace alone', () => {
  const text = '4242 pid:[4026532500] NSpid:\t4242\t77\n4243 pid:[4026532600] NSpid:\t4243\t77\n9 \n10 pid:[4026532500] \n';
  expect([...parseInnerPids(text, 'pid:[4026532500]')]).toEqual([[4242, 77]]);
});

test('containers have the names that docker gives them', () => {
  expect(parseNames(`${'ab'.repeat(32)} vllm-kimi\nnonsense\n${'cd'.repeat(6)} x\n`)).toEqual([
    ['abababababab', 'vllm-kimi'],
    ['cdcdcdcdcdcd', 'x'],
  ]);
});
