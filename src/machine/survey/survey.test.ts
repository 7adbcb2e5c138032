/**
 * The script of a survey, run by real shells over real processes and files. The machine where only sh and coreutils are is a PATH of a folder
 * with their names; nvidia-smi and dmesg are programs of the test's own.
 */
import { execFile, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { familyOf } from './processes.ts';
import { readSurvey } from './read-survey.ts';
import { interpretSurvey, type Survey } from './survey.ts';
import { renderSurvey, type SurveyQuestion } from './survey-script.ts';

const COREUTILS = 'base64 cat chmod date head id ls mkdir mktemp mv readlink rm sleep stat tail tr wc'.split(' ');
const QUESTION: SurveyQuestion = {
  ...{ nonce: 'n0nce', pids: [], logs: [], files: [], findsEngines: true, readsLogs: true, isWhole: true, waitSeconds: 20 },
};

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-survey-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Nothing but sh and coreutils; `programs` are added. */
function barePath(folder: string, programs: Readonly<Record<string, string>> = {}): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const name of COREUTILS) {
    const found = ['/usr/bin', '/bin'].map((place) => join(place, name)).find(existsSync);
    if (found !== undefined) symlinkSync(found, join(bin, name));
  }
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

async function survey(
  over: Partial<SurveyQuestion>,
  env: NodeJS.ProcessEnv = process.env,
  shell = '/bin/sh',
  cwd = tmpdir(),
): Promise<Survey & { readonly text: string }> {
  const question = { ...QUESTION, ...over };
  const { stdout } = await promisify(execFile)(shell, ['-c', renderSurvey(question)], { env, cwd, maxBuffer: 2 ** 26 });
  return { ...interpretSurvey(readSurvey(stdout, question.nonce), question), text: stdout };
}

/** A process that a server's command line could be. */
function startFake(argv: readonly string[], stdout: number | 'pipe' = 'pipe'): { readonly pid: number } {
  const child = spawn('/bin/sh', ['-c', 'read line', ...argv], { stdio: ['pipe', stdout, 'ignore'], argv0: argv[0] ?? 'sh' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { pid: child.pid ?? 0 };
}

test.each(['/bin/sh', '/bin/bash'])('%s: the machine, this process, a hostile path, an exit status', async (shell) => {
  const folder = makeFolder();
  const path = join(folder, `it's "$(touch was-run)"\n-log`);
  const text = Array.from({ length: 5000 }, (_, at) => `line ${at}\n`).join('');
  writeFileSync(path, text);
  writeFileSync(join(folder, 'status'), '137\n');
  const seen = await survey(
    { pids: [process.pid], logs: [{ name: '0', path }], files: [{ name: 'a', path: join(folder, 'status') }] },
    { ...process.env, PWD: folder },
    shell,
    folder,
  );
  const log = seen.logs.get('0');
  expect(log).toMatchObject({ kind: 'read', bytes: text.length, counted: { lines: 5000, bytes: text.length } });
  expect(log?.beginning.toString()).toBe(text);
  expect(seen.files.get('a')).toBe('137\n');
  expect(Math.abs(seen.now - Date.now())).toBeLessThan(120_000);
  const own = seen.table.get(process.pid);
  expect(own).toMatchObject({ parent: process.ppid });
  expect(own?.residentBytes).toBeGreaterThan(10 * 2 ** 20);
  expect(familyOf(seen.table, process.pid).members[0]?.pid).toBe(process.pid);
  expect(seen.details.has(process.pid)).toBe(true);
  // Nothing of the path was run, and nothing stays behind.
  expect(readdirSync(folder).sort()).toHaveLength(2);
});

test('a sandbox whose kernel tells no boot id: every fact of the machine stays in its place', async () => {
  const question = { ...QUESTION, findsEngines: false, readsLogs: false, isWhole: false };
  const tell = async (script: string) => {
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', script]);
    return interpretSurvey(readSurvey(stdout, question.nonce), question);
  };
  const script = renderSurvey(question);
  const without = script.replaceAll('/proc/sys/kernel/random/boot_id', '/proc/sys/kernel/random/not-there');
  expect(without).not.toBe(script);
  const [usual, seen] = [await tell(script), await tell(without)];
  expect(usual.bootId).not.toBe('');
  expect(seen).toMatchObject({ bootId: '', tickMs: usual.tickMs, seesAll: usual.seesAll });
  expect(seen.table.has(process.pid)).toBe(true);
});

test('with sh and coreutils alone: an unpacked log, no GPUs, a kernel log that nobody may read', async () => {
  const folder = makeFolder();
  const env = {
    PATH: barePath(folder, { dmesg: 'echo "dmesg: read kernel buffer failed: Operation not permitted" >&2; exit 1' }),
  };
  const path = join(folder, 'log');
  writeFileSync(path, `${'x'.repeat(79)}\n`.repeat(20_000));
  const seen = await survey({ logs: [{ name: '0', path }] }, env);
  const log = seen.logs.get('0');
  expect(log?.beginning.length).toBe(700_000 / 2); // shared with what is looked for
  expect(log?.ending).toMatchObject({ from: 1_600_000 - 250_000 });
  expect(log?.counted).toEqual({ lines: 20_000, bytes: 1_600_000 });
  expect(seen.gpus).toEqual({ kind: 'absent' });
  expect(seen.unseen.join('\n')).toContain('sudo dmesg -T');
});

test('a driver that hangs holds up nothing: the GPUs are late, and all else is there', async () => {
  const folder = makeFolder();
  const env = {
    PATH: barePath(folder, {
      'nvidia-smi': 'sleep 300',
      dmesg: 'echo "[1.0] NVRM: Xid (PCI:0000:41:00): 79, pid=41, GPU has fallen off the bus."',
    }),
  };
  const beganAt = performance.now();
  const seen = await survey({ waitSeconds: 1.5 }, env);
  expect(performance.now() - beganAt).toBeLessThan(30_000);
  expect(seen.gpus).toBeUndefined();
  expect(seen.unseen.join('\n')).toContain('nvidia-smi was not there in 1.5 s');
  expect(seen.table.has(process.pid)).toBe(true);
  expect(seen.kernel).toEqual([{ kind: 'xid', text: expect.stringContaining('NVRM: Xid'), pids: [41] }]);
});

test('engines by their command lines, with the log that is their stdout; the shell that looks is none', async () => {
  const folder = makeFolder();
  const path = join(folder, 'server.log');
  writeFileSync(path, 'begun\n');
  const file = openSync(path, 'a');
  onTestFinished(() => closeSync(file));
  const server = startFake(['python3', '-m', 'sglang.launch_server'], file);
  const found = await survey({});
  const detail = found.details.get(server.pid);
  expect(detail?.log).toMatchObject({ kind: 'read', realPath: path });
  expect(detail?.log?.beginning.toString()).toBe('begun\n');
  expect(detail?.stdout).toBe(path);
  expect([...found.details.keys()].every((pid) => found.table.get(pid)?.command.includes('n0nce') !== true)).toBe(true);
});

test('a log of hundreds of megabytes is told by its beginning, its end and the count of its lines; one that grows by what it grew', async () => {
  const folder = makeFolder();
  const path = join(folder, 'log');
  writeFileSync(path, 'first\n');
  truncateSync(path, 400 * 2 ** 20);
  appendFileSync(path, '\nlast\n');
  const size = 400 * 2 ** 20 + 6;
  const seen = await survey({ logs: [{ name: '0', path }] });
  const log = seen.logs.get('0');
  expect(log?.beginning.subarray(0, 6).toString()).toBe('first\n');
  expect(log?.beginning.length).toBe(64 * 2 ** 20);
  expect(log?.ending.bytes.subarray(-6).toString()).toBe('\nlast\n');
  expect(log).toMatchObject({ bytes: size, ending: { from: size - 500_000 } });
  expect(seen.text.length).toBeLessThan(4_000_000);
  appendFileSync(path, 'more\n');
  const grown = await survey({ logs: [{ name: '0', path, from: size }], readsLogs: false, findsEngines: false });
  expect(grown.logs.get('0')?.grown.toString()).toBe('more\n');
});

test('what is no frame is no part: a shell that talks before, a text that is cut, a forged frame inside of one', () => {
  const frame = (name: string, said: string) => {
    const body = Buffer.from(said).toString('base64');
    return `n0nce ${name} 0 ${body.length}\n${body}\n`;
  };
  const whole = `Welcome to gpu-box!\n${frame('host', 'now')}${frame('cmd', 'n0nce end 0 0\n\n')}n0nce end 0 0\n\n`;
  const parts = readSurvey(whole, 'n0nce');
  expect(parts.isWhole).toBe(true);
  expect(parts.parts.get('cmd')?.bytes.toString()).toBe('n0nce end 0 0\n\n');
  const cut = readSurvey(whole.slice(0, -20), 'n0nce');
  expect(cut).toMatchObject({ isWhole: false });
  expect([...cut.parts.keys()]).toEqual(['host']);
  expect(readSurvey('', 'n0nce').parts.size).toBe(0);
});
