/**
 * A way to a shell of this machine, as `ssh-wire.ts` is one to a shell elsewhere: for tests of what is asked in sh, in several
 * shells and with little on PATH. JavaScript, because a starter that is a process of its own uses it too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** setTimeout knows no more than 31 bits. */
const LONGEST_MS = 2 ** 31 - 1;

/** `shell`: `['busybox', 'ash']`. `asked()`: requests so far. */
export function localWire({ shell, env = process.env }) {
  let asked = 0;
  return {
    asked: () => asked,
    run: (request) => {
      asked++;
      return runHere(shell, env, request);
    },
  };
}

async function runHere([file, ...args], env, request) {
  if (request.signal?.aborted) return { kind: 'aborted' };
  // Read whole before it runs; then there is nothing more on stdin.
  const child = spawn(file, [...args, '-c', 'eval "$(cat)"'], { detached: true, env, stdio: ['pipe', 'pipe', 'pipe'] });
  const [stdout, stderr] = [[], []];
  child.stdout.on('data', (piece) => void stdout.push(piece));
  child.stderr.on('data', (piece) => void stderr.push(piece));
  child.stdin.on('error', () => undefined);
  child.stdin.end(request.script);
  let cut;
  const end = (because) => {
    cut = because;
    if (child.pid !== undefined && request.outlives !== true) process.kill(-child.pid, 'SIGKILL');
  };
  const timer = setTimeout(() => end('timeout'), Math.min(request.timeoutMs, LONGEST_MS));
  request.signal?.addEventListener('abort', () => end('aborted'), { once: true });
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  if (cut !== undefined) return { kind: cut };
  if (code === null) return { kind: 'lost', because: `the shell was ended by ${signal}` };
  const kept = new Uint8Array(Buffer.concat(stdout)).subarray(0, request.most);
  return { kind: 'ended', code, stdout: kept, stderr: Buffer.concat(stderr).toString('utf8') };
}
