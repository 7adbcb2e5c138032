/**
 * What a disk does, measured in a folder of its own that is removed afterwards: one round is what a commit costs
 * (write, fsync, rename, fsync of the folder), and the lock is the one that `aerie run` takes, tried from another process.
 */
import { mkdtemp, open, rename, rm, statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemCodeOf } from '../../base/errors.ts';
import { runCommand } from '../../host/commands.ts';
import { findMount } from '../../host/find-mount.ts';
import type { Host } from '../../host/host.ts';
import { holdRun } from '../../ledger/sqlite/worker-lock.ts';
import { syncFolder } from '../../shard/durable-folder.ts';
import { type DoctorCheck, fails, ok } from './finding.ts';
import { judgeFileSystem, judgeLatency, judgeLock, judgeSpace, type Needs } from './judge.ts';

/** Enough for a median; on a slow disk (100 ms) it is still under two seconds. */
const ROUNDS = 9;
/** A commit of a busy run. */
const ROUND_BYTES = 65_536;
/** Node starts within a second; a busy machine takes longer. */
const LOCK_MS = 60_000;
const LOCK_PROGRAM = fileURLToPath(new URL('../../programs/try-lock.js', import.meta.url));

/** `folder` need not exist; `place` is the nearest folder above it that does. */
export async function checkDisk(folder: string, place: string, needs: Needs, host: Host): Promise<DoctorCheck[]> {
  const checks = [judgeFileSystem(folder, await findMount(folder))];
  const { bavail, bsize } = await statfs(place);
  checks.push(judgeSpace(bavail * bsize, needs));
  let probe: string;
  try {
    probe = await mkdtemp(join(place, '.aerie-doctor-'));
  } catch (thrown) {
    const next = 'Make the folder writable for this user, or put the run file in one that is.';
    return [...checks, fails('disk write', `${place} cannot be written: ${systemCodeOf(thrown)}`, next, { folder: place })];
  }
  try {
    checks.push(ok('disk write', `${place} can be written`, { folder: place }));
    checks.push(await checkLatency(probe, host));
    checks.push(await checkLock(probe, host));
  } finally {
    await rm(probe, { recursive: true, force: true });
  }
  return checks;
}

async function checkLatency(folder: string, { clock }: Host): Promise<DoctorCheck> {
  const bytes = Buffer.alloc(ROUND_BYTES, 'x');
  const roundsMs: number[] = [];
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const startedMs = clock.elapsed();
      const file = await open(join(folder, 'new'), 'w');
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(join(folder, 'new'), join(folder, 'whole'));
      await syncFolder(folder);
      roundsMs.push(clock.elapsed() - startedMs);
    }
  } catch (thrown) {
    const what = thrown instanceof Error ? thrown.message : String(thrown);
    return fails('disk sync', `write, fsync and rename do not work: ${what}`, 'Look at dmesg and df; use another disk.');
  }
  return judgeLatency(roundsMs);
}

async function checkLock(folder: string, host: Host): Promise<DoctorCheck> {
  try {
    const held = holdRun(folder, { pid: host.pid, host: hostname(), startedAt: host.clock.now() });
    let whileHeld: string;
    try {
      whileHeld = await tryLock(folder, host);
    } finally {
      held.release();
    }
    return judgeLock({ whileHeld, afterwards: await tryLock(folder, host) });
  } catch (thrown) {
    const what = thrown instanceof Error ? thrown.message : String(thrown);
    return fails('locking', `a lock cannot be taken here: ${what}`, 'Put the run file on another disk.');
  }
}

/** `taken`, `refused`, or what went wrong. */
async function tryLock(folder: string, { env }: Host): Promise<string> {
  const result = await runCommand({ file: process.execPath, args: [LOCK_PROGRAM, folder], env, timeoutMs: LOCK_MS });
  if (result.kind !== 'ended') return result.kind === 'died' ? result.because : result.kind;
  return result.stdout.trim() || result.stderr.trim().split('\n').at(-1) || `ended with ${result.code}`;
}
