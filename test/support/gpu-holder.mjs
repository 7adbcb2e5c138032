/**
 * A program that holds memory of lookalike GPUs: `node test/support/gpu-holder.mjs '{"mib":[10240]}'`. Prints `holding` when it does.
 * deaf: ignores SIGTERM. keepsAfterDeath: see gpu-state.ts. child: the same for a child of its own, which it reaps unless
 * `reaps` is false: then it stops itself (SIGSTOP reaps nobody) as soon as the child holds.
 */
import { spawn } from 'node:child_process';
import { openGpuMemory } from '../../dist/programs/lookalike/gpu-memory.js';

const { mib = [], deaf = false, keepsAfterDeath, child, reaps = true } = JSON.parse(process.argv[2] ?? '{}');
if (deaf) process.on('SIGTERM', () => undefined);
openGpuMemory(process.env)?.hold(mib, keepsAfterDeath);
if (child !== undefined) {
  const started = spawn(process.execPath, [process.argv[1], JSON.stringify(child)], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => started.stdout.once('data', resolve));
}
process.stdout.write('holding\n');
if (!reaps) process.kill(process.pid, 'SIGSTOP');
setInterval(() => undefined, 1_000_000);
