/** Memory of lookalike GPUs is held as long as a real process lives, and as each exception of it says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../../test/support/child-processes.ts';
import { openGpuMemory } from './gpu-memory.ts';
import { type Hold, holderKeyOf, writeHold } from './gpu-state.ts';

function stateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-gpus-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const gpu = (nth: number) => ({ uuid: `GPU-${nth}`, name: 'NVIDIA Lookalike', totalMiB: 97887, baseMiB: 500 });
  writeFileSync(join(folder, 'gpus.json'), JSON.stringify([gpu(0), gpu(1)]));
  return folder;
}

async function startHolder(folder: string, hold: Partial<Hold> = {}): Promise<ChildProcess> {
  const child = spawn('sleep', ['1000']);
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  writeHold(folder, holderKeyOf(child.pid ?? 0), { name: 'sleep', gpus: { 1: 40_000 }, ...hold });
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

test('no variable, no GPUs; a folder that is not as described is an error', () => {
  expect(openGpuMemory({})).toBeUndefined();
  expect(() => openGpuMemory({ AERIE_LOOKALIKE_GPUS: '/nowhere' })).toThrow(/gpus\.json/);
});

test('what this process holds and releases, and what another holds until it is killed', async () => {
  const folder = stateFolder();
  const memory = openGpuMemory({ AERIE_LOOKALIKE_GPUS: folder });
  if (memory === undefined) throw new Error('it is there');
  expect([memory.count, memory.free(0), memory.free(1)]).toEqual([2, 97_387, 97_387]);
  memory.hold([1000, 2000]);
  memory.hold([1000, 7387]); // replaces
  const other = await startHolder(folder);
  expect([memory.free(0), memory.free(1)]).toEqual([96_387, 50_000]);
  await end(other);
  expect(memory.free(1)).toBe(90_000);
  memory.release();
  expect([memory.free(0), memory.free(1)]).toEqual([97_387, 97_387]);
  expect(() => memory.hold([1, 1, 1])).toThrow('there is no GPU 2');
});

test('memory that stays after its process: for ever, and for a while', async () => {
  const folder = stateFolder();
  const memory = openGpuMemory({ AERIE_LOOKALIKE_GPUS: folder });
  await end(await startHolder(folder, { keepsAfterDeath: true }));
  await end(await startHolder(folder, { keepsAfterDeath: 300, gpus: { 0: 40_000 } }));
  expect(memory?.free(0)).toBe(57_387);
  await until(() => memory?.free(0) === 97_387);
  expect(memory?.free(1)).toBe(57_387);
});

test.runIf(process.platform === 'linux')('a zombie holds nothing, unless its hold says until-reaped', async () => {
  const folder = stateFolder();
  const memory = openGpuMemory({ AERIE_LOOKALIKE_GPUS: folder });
  // The shell becomes a program that never reaps the child it was given.
  const parent = spawn('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000'], { stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const key = holderKeyOf(Number(line.toString()));
  writeHold(folder, key, { name: 'sleep', gpus: { 0: 1000 } });
  expect(memory?.free(0)).toBe(96_387);
  process.kill(key.pid, 'SIGKILL');
  await until(() => memory?.free(0) === 97_387);
  writeHold(folder, key, { name: 'sleep', gpus: { 0: 1000 }, keepsAfterDeath: 'until-reaped' });
  expect(memory?.free(0)).toBe(96_387);
  await end(parent);
  await until(() => memory?.free(0) === 97_387); // the init of this place has reaped it
});
