/**
 * Where the engine of a launch is asked: the one place that knows. A process and a container are on the loopback of their machine; a job
 * of Slurm on the node that squeue names, as the machine that sees Slurm reaches it.
 *
 * Promise: while nobody can say where it listens nothing is asked, because whoever listens elsewhere on that port is somebody else.
 */
import { AerieError } from '../../base/errors.ts';
import { formatDuration } from '../../base/units.ts';
import { findFlag, VLLM_LINE } from '../../engine/launching.ts';
import type { Inside } from '../../machine/contained/inside.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { containedOf } from './contained-launch.ts';
import type { LaunchRecord } from './launch-book.ts';
import type { LauncherOptions } from './launcher-options.ts';
import { LOOPBACK } from './loopback.ts';

export type LaunchAddress =
  /** `address`: on which network address of its machine, or of another one; undefined: the loopback. */
  | { readonly kind: 'listens'; readonly address: string | undefined }
  /** It has none: `queued` in Slurm; `none`: Slurm knows nothing of it; `unknown`: Slurm does not answer. */
  | { readonly kind: 'queued' | 'none' | 'unknown'; readonly says: string };

type Contained = Pick<LaunchRecord, 'contained' | 'env' | 'marker'>;

/** As it is now; waits for nothing. */
export async function addressOfLaunch(machine: Machine, record: Contained): Promise<LaunchAddress> {
  if (record.contained?.kind !== 'step') return { kind: 'listens', address: undefined };
  const jobs = await containedOf(machine, record)?.insides(record.marker);
  if (jobs === undefined)
    return { kind: 'unknown', says: `Slurm does not answer on ${machine.name} (squeue --name ${record.marker})` };
  const [job] = jobs;
  if (job === undefined) return { kind: 'none', says: `Slurm has no job ${record.marker}` };
  if (job.state === 'waiting') return { kind: 'queued', says: sayQueued(job) };
  return { kind: 'listens', address: await otherNode(machine, job.node) };
}

function sayQueued({ name, says }: Inside): string {
  return `queued in Slurm: ${name} waits: ${says}`;
}

/** undefined: the node is the machine itself, or is not told. */
async function otherNode(machine: Machine, node: string): Promise<string | undefined> {
  const result = await machine.run({ file: 'hostname', args: [], timeoutMs: 10_000 });
  const own = result.kind === 'ended' ? result.stdout.trim() : '';
  return node === '' || node === own || node === own.split('.')[0] ? undefined : node;
}

/** A way to the engine of a launch; where it has no address one that never opens. */
export async function reachLaunch(machine: Machine, { port }: Pick<LaunchRecord, 'port'>, at: LaunchAddress): Promise<Reach> {
  if (at.kind === 'listens') return await machine.reach(port, at.address);
  return {
    baseUrl: `http://${LOOPBACK}:${port}`,
    isOpen: () => false,
    drops: () => 0,
    refusal: () => undefined,
    close: async () => undefined,
  };
}

/** Slurm's controller asks its nodes every minute or so; a job that can start does so within seconds. */
const QUEUE_LOOK_MS = 2_000;
/** A queue takes hours: often enough to see that it is still asked, seldom enough for a log. */
const TOLD_AGAIN_MS = 600_000;

/** Waits while the job waits in the queue of Slurm, without a limit. Throws `machine.unreachable`: what waits there goes on. */
export async function findAddress(
  options: Pick<LauncherOptions, 'machine' | 'host' | 'emit' | 'name' | 'signal'>,
  record: LaunchRecord,
): Promise<LaunchAddress> {
  const { machine, host, emit, name, signal } = options;
  const beganAt = host.clock.elapsed();
  for (let told = { says: '', at: 0 }; ; ) {
    const at = await addressOfLaunch(machine, record);
    if (at.kind === 'listens') return at;
    if (signal.aborted || (at.kind === 'none' && (await hasClientEnded(machine, record)))) return at;
    const now = host.clock.elapsed();
    const says = at.kind === 'none' ? 'queued in Slurm: it has not taken the job yet' : at.says;
    if (says !== told.says || now - told.at >= TOLD_AGAIN_MS) {
      const waited = says === told.says ? `, for ${formatDuration(now - beganAt)}` : '';
      const facts = { launch: record.n, phase: at.kind === 'unknown' ? '' : 'queued in Slurm', says: `${says}${waited}` };
      emit({ kind: 'launch.phase', subject: name, facts });
      told = { says, at: now };
    }
    await host.clock.sleep(QUEUE_LOOK_MS, signal);
  }
}

async function hasClientEnded(machine: Machine, record: LaunchRecord): Promise<boolean> {
  if (record.identity === undefined) return true;
  const { main } = await machine.look(record.identity, record);
  return main !== 'running';
}

/** Why nobody reaches it there, ever: it came to another node and listens on its loopback alone. */
export function refusedLoopback({ flags }: Pick<LaunchRecord, 'flags'>, at: LaunchAddress): AerieError | undefined {
  const host = String(findFlag(flags, ['host'], VLLM_LINE) ?? LOOPBACK);
  const isElsewhere = at.kind === 'listens' && at.address !== undefined;
  if (!isElsewhere || (host !== LOOPBACK && host !== 'localhost' && host !== '::1')) return undefined;
  const node = at.address;
  return new AerieError('server.not-launched', `Slurm started the engine on node ${node}, where it listens on ${host} alone.`, {
    remedy: `Write host: 0.0.0.0 under flags:, so that it is reached at ${node}; then the same command. What was started was ended.`,
  });
}
