/** `aerie diagnose`: files, gzip, a pipe, several ranks, and what is no log. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { MAIN, makeProject, type Project } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';

const door = openDoor();

const LOGS = join(import.meta.dirname, '../corpus/logs');
const CRASH = readFileSync(join(LOGS, '028-sglang-weights-exceed-fraction-dsv4pro.log'));
const READY = readFileSync(join(LOGS, '023-sglang-ready-zero-avail-mem-jit.log'));

test('says the state, the cause with the line that shows it, and what to type; exit code 1', async () => {
  const project = projectWith({ 'server.log': CRASH.toString() });
  const result = await project.aerie(['diagnose', 'server.log']);
  expect(result.code, result.stderr).toBe(1);
  expect(result.stdout).toMatch(/^state {5}crashed, in kv-pool-allocation\n/);
  expect(result.stdout).toContain('cause     weights-exceed-static-fraction');
  expect(result.stdout).toContain('line 3  ValueError: Loaded weights leave no GPU memory');
  // 125.65 GiB of weights and 12.25 left: 0.9112 of it is the weights, and a little more makes a pool.
  expect(result.stdout).toContain('--mem-fraction-static 0.94');
  expect(result.stdout).toContain('again     the same flags will end the same way');
});

test('a healthy log exits 0, with the facts that stand in it', async () => {
  const project = projectWith({ 'server.log': READY.toString() });
  const result = await project.aerie(['diagnose', 'server.log', '--json']);
  expect(result.code, result.stderr).toBe(0);
  const { command, data } = result.json();
  expect(command).toBe('diagnose');
  expect(data).toMatchObject({
    ...{ state: 'ready', phase: null, cause: 'none', restartSameFlagsHelps: null, logs: ['server.log'] },
    facts: { engine: 'sglang', poolTokens: 15_387, freeBeforeLoadGiB: 3.23, weightsGiBPerGpu: 1.2 },
  });
  expect(Object.keys(data)).toEqual(expect.arrayContaining(['evidence', 'remedy', 'notes', 'hypotheses', 'confidence', 'title']));
});

test('reads gzip whatever its name, and a pipe, plain or gzip', async () => {
  const project = door.through(makeProject());
  project.write('packed.log', gzipSync(CRASH));
  expect((await project.aerie(['diagnose', 'packed.log', '--json'])).json().data.cause).toBe('weights-exceed-static-fraction');
  for (const bytes of [CRASH, gzipSync(CRASH)]) expect((await piped(bytes)).data.cause).toBe('weights-exceed-static-fraction');
});

test('several files are ranks of one server: the first cause in time, with its file', async () => {
  const project = projectWith({
    'rank0.log':
      '[2026-02-01 10:12:00 TP0] Scheduler hit an exception: Traceback\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n',
    'rank1.log':
      '[2026-02-01 10:01:00 TP1] Scheduler hit an exception: Traceback\ntorch.AcceleratorError: CUDA error: an illegal memory access was encountered\n',
  });
  const { data } = (await project.aerie(['diagnose', 'rank0.log', 'rank1.log', '--json'])).json();
  expect(data.cause).toBe('cuda-illegal-memory-access');
  expect(data.evidence[0]).toMatchObject({ file: 'rank1.log', line: 2 });
});

test('--now judges silence, and a time that is none is refused with an example', async () => {
  const project = projectWith({ 'server.log': '[2026-02-01 10:00:01 TP0] sglang is using nccl==2.27.5\n' });
  const late = (await project.aerie(['diagnose', 'server.log', '--now', '2026-02-01 11:00:00', '--json'])).json().data;
  expect(late).toMatchObject({ state: 'hung', cause: 'nccl-init-hang' });
  const soon = (await project.aerie(['diagnose', 'server.log', '--now', '2026-02-01T10:01:00Z', '--json'])).json().data;
  expect(soon).toMatchObject({ state: 'initializing', cause: 'none' });
  const wrong = await project.aerie(['diagnose', 'server.log', '--now', 'yesterday']);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain('--now "2026-01-30 01:13:16"');
});

test('what is no log is refused: no such file, UTF-16, a damaged archive', async () => {
  const project = door.through(makeProject());
  project.write('utf16.log', Buffer.from('server_args=ServerArgs(', 'utf16le'));
  project.write('cut.gz', gzipSync(Buffer.alloc(100_000, 'x\n')).subarray(0, 60));
  for (const [file, text] of [
    ['absent.log', 'There is no log'],
    ['utf16.log', 'UTF-16'],
    ['cut.gz', 'cannot be read'],
  ] as const) {
    const result = await project.aerie(['diagnose', file]);
    expect(result.code, file).toBe(2);
    expect(result.stderr, file).toMatch(new RegExp(text, 'i'));
    expect(result.stderr).not.toMatch(/\n {4}at /);
  }
});

function projectWith(files: Readonly<Record<string, string>>): Project {
  const project = door.through(makeProject());
  for (const [name, text] of Object.entries(files)) project.write(name, text);
  return project;
}

async function piped(bytes: Uint8Array): Promise<{ data: { cause: string } }> {
  const child = spawn(process.execPath, [MAIN, 'diagnose', '-', '--json'], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(bytes);
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  await once(child, 'close');
  return JSON.parse(out) as { data: { cause: string } };
}
