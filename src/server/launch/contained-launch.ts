/** A launch whose command is a client, as its record in the book says: the machine that sees inside, and the address that Slurm gave it. */
import { AerieError } from '../../base/errors.ts';
import { findFlag, VLLM_LINE } from '../../engine/launching.ts';
import { type ContainedMachine, containedMachine } from '../../machine/contained/contained-machine.ts';
import { LABEL } from '../../machine/contained/containers.ts';
import type { Machine, ProcessLook } from '../../machine/machine.ts';
import type { LaunchRecord } from './launch-book.ts';
import type { LauncherOptions } from './launcher-options.ts';
import { LOOPBACK } from './loopback.ts';

/** undefined: the launch is a process of the machine itself. Secrets of its environment are not needed, and not given. */
export function containedOf(
  machine: Machine,
  { contained, env }: Pick<LaunchRecord, 'contained' | 'env'>,
): ContainedMachine | undefined {
  if (contained === undefined) return undefined;
  const told = Object.entries(env).filter(([, value]) => !value.startsWith('$'));
  return containedMachine(machine, contained, Object.fromEntries(told));
}

/** The machine as this launch needs it. */
export function machineOfLaunch(machine: Machine, record: Pick<LaunchRecord, 'contained' | 'env'>): Machine {
  return containedOf(machine, record) ?? machine;
}

/** A client that is gone, and nobody to ask whether what it started is: nothing is judged, and nothing is started beside it. */
export function refuseUnasked(name: string, { contained, marker }: LaunchRecord, { main }: Pick<ProcessLook, 'main'>): void {
  if (contained === undefined || main !== 'unknown') return;
  const isContainer = contained.kind === 'container';
  const see = isContainer ? `${contained.control} ps -a --filter label=${LABEL}=${marker}` : `squeue --name ${marker}`;
  throw new AerieError(
    'server.not-launched',
    `Whether the last launch of ${name} still runs cannot be asked: ${isContainer ? 'docker' : 'Slurm'} does not answer.`,
    {
      remedy: `See what it says:  ${see}
Then give the same command again. Nothing was started or ended.`,
    },
  );
}

/** Slurm's controller asks its nodes every minute or so; a job that can start does so within seconds. */
const QUEUE_LOOK_MS = 2_000;

/**
 * Where the engine of a launch listens, as this machine reaches it; undefined: on the loopback. Waits while the job waits in the queue of
 * Slurm. Throws `server.not-launched` where it came to another node and listens on its loopback alone.
 */
export async function findAddress(
  options: Pick<LauncherOptions, 'machine' | 'host' | 'emit' | 'name' | 'signal'>,
  record: LaunchRecord,
): Promise<string | undefined> {
  const { machine, host, emit, name, signal } = options;
  if (record.contained?.kind !== 'step') return undefined;
  const contained = containedOf(machine, record);
  for (let told = ''; !signal.aborted; ) {
    const [job] = (await contained?.insides(record.marker)) ?? [];
    if (job?.state === 'running') return await addressOf(machine, record, job.node);
    if (job === undefined && (await hasClientEnded(machine, record))) return undefined;
    const says = job === undefined ? 'Slurm has not taken the job yet' : `${job.name} waits: ${job.says}`;
    if (says !== told) emit({ kind: 'launch.phase', subject: name, facts: { launch: record.n, phase: '', says } });
    told = says;
    await host.clock.sleep(QUEUE_LOOK_MS, signal);
  }
  return undefined;
}

async function hasClientEnded(machine: Machine, record: LaunchRecord): Promise<boolean> {
  if (record.identity === undefined) return true;
  const { main } = await machine.look(record.identity, record);
  return main !== 'running';
}

async function addressOf(machine: Machine, { flags }: LaunchRecord, node: string): Promise<string | undefined> {
  const result = await machine.run({ file: 'hostname', args: [], timeoutMs: 10_000 });
  const own = result.kind === 'ended' ? result.stdout.trim() : '';
  if (node === '' || node === own || node === own.split('.')[0]) return undefined;
  const host = String(findFlag(flags, ['host'], VLLM_LINE) ?? LOOPBACK);
  if (host !== LOOPBACK && host !== 'localhost' && host !== '::1') return node;
  throw new AerieError('server.not-launched', `Slurm started the engine on node ${node}, where it listens on ${host} alone.`, {
    remedy: `Write host: 0.0.0.0 under flags:, so that it is reached at ${node}; then the same command. What was started was ended.`,
  });
}
