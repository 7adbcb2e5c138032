/** The mount that holds a path, asked of the system. undefined where the system does not tell; never throws. */
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { runCommand } from './commands.ts';
import { type Mount, mountOf, parseMountCommand, parseMountInfo } from './file-systems.ts';

/** `mount` answers at once; where a dead network share holds it up, not knowing is better than waiting. */
const MOUNT_MS = 5_000;

/** `path` need not exist: what counts is where it would be made. */
export async function findMount(path: string): Promise<Mount | undefined> {
  const there = await nearestExisting(path);
  const real = join(await realpath(there).catch(() => there), relative(there, path));
  return mountOf(real, await readMounts());
}

/** The path itself, or the nearest folder above it that is there. */
export async function nearestExisting(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const isThere = await realpath(at).then(
      () => true,
      () => false,
    );
    if (isThere || at === dirname(at)) return at;
  }
}

async function readMounts(): Promise<Mount[]> {
  if (process.platform === 'linux') return parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''));
  const result = await runCommand({ file: 'mount', args: [], env: process.env, timeoutMs: MOUNT_MS });
  return result.kind === 'ended' ? parseMountCommand(result.stdout) : [];
}
