/** An Aerie that can open no more files knows nothing of this machine then, and says so: what it cannot see is not gone. */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../support/without-files.mjs', import.meta.url));

test.runIf(process.platform === 'linux')(
  'a process that lives is not gone, and no program that cannot be started ends Aerie',
  () => {
    const marker = `m-${randomBytes(8).toString('hex')}`;
    const child = spawn('sleep', ['600'], { stdio: 'ignore', env: { ...process.env, AERIE_LAUNCH: marker } });
    onTestFinished(() => void child.kill('SIGKILL'));
    const script = 'ulimit -n 400; exec "$@"'; // enough for what node itself opens at once
    const words = [process.execPath, PROGRAM, String(child.pid), marker];
    const told = JSON.parse(execFileSync('sh', ['-c', script, 'sh', ...words], { encoding: 'utf8' })) as unknown;
    const away = 'machine.unreachable';
    expect(told).toEqual({
      without: {
        ...{ look: 'unknown', found: away, port: away, signal: away },
        held: { stderr: 'true did not start: EMFILE', isAbsent: false },
        piped: { kind: 'ended', stderr: 'true did not start: EMFILE' },
        command: { kind: 'died', because: 'true did not start: EMFILE' },
      },
      with: {
        ...{ look: 'running', found: 1, port: 'free', signal: 'another-process' },
        held: { code: 0, stderr: '', isAbsent: false },
        piped: { kind: 'ended', code: 0, stderr: '' },
        command: { kind: 'ended', code: 0, stdout: '', stderr: '' },
      },
    });
  },
);
