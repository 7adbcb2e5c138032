/**
 * Who holds memory of the GPUs here. Gathers for `holder-facts.ts`; what may not be seen is said, with the command for
 * someone who may.
 */
import { existsSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { type CommandResult, runCommand } from '../../host/commands.ts';
import type { Host } from '../../host/host.ts';
import {
  bearsOnGpus,
  describeHolders,
  describeProcess,
  driverFiles,
  gpuLookOf,
  listedPids,
  parseMinors,
  parseUsers,
} from '../describe-holders.ts';
import type { SeenProcess } from '../holder-facts.ts';
import type { GpuLook, HoldersLook } from '../machine.ts';
import { NVIDIA_SMI_MS, QUERY_COMPUTE_APPS, QUERY_GPUS } from '../nvidia-smi.ts';
import { hasEnded, type ProcessStat } from '../parse-stat.ts';
import { askEach, hasProc, readAllStats, readBootId, readOpenFiles, readProc } from './proc.ts';

export async function readGpus(host: Host): Promise<GpuLook> {
  return gpuLookOf(await nvidiaSmi(host, QUERY_GPUS));
}

export async function lookForHolders(host: Host): Promise<HoldersLook> {
  const result = await nvidiaSmi(host, QUERY_COMPUTE_APPS);
  const hasDevices = existsSync('/dev/nvidiactl');
  const isNeeded = result.kind !== 'absent' || hasDevices;
  return describeHolders({
    ...{ result, hasDevices },
    processes: isNeeded && hasProc() ? await seeProcesses(listedPids(result)) : [],
    uuidByMinor: isNeeded ? await readMinors() : new Map(),
    pidNamespace: await readlink('/proc/self/ns/pid').catch(() => ''),
  });
}

function nvidiaSmi(host: Host, args: readonly string[]): Promise<CommandResult> {
  return runCommand({ file: 'nvidia-smi', args, env: host.env, timeoutMs: NVIDIA_SMI_MS });
}

async function seeProcesses(listed: readonly number[]): Promise<SeenProcess[]> {
  const [stats, bootId, passwd] = await Promise.all([readAllStats(), readBootId(), readProc('/etc/passwd')]);
  const users = parseUsers(passwd ?? '');
  const byPid = new Map(stats.map((stat) => [stat.pid, stat]));
  const seen = await askEach(stats, async (stat) => {
    const devices = await readDevices(stat);
    if (!bearsOnGpus(stat, devices, listed)) return undefined;
    const [commandLine = '', status = '', cgroup = ''] = await readTexts(stat.pid, ['cmdline', 'status', 'cgroup']);
    const above = hasEnded(stat.state) ? byPid.get(stat.parent) : undefined;
    const [aboveLine = ''] = above === undefined ? [] : await readTexts(above.pid, ['cmdline']);
    const parent = above === undefined ? undefined : { stat: above, commandLine: aboveLine };
    return describeProcess({ stat, devices, bootId, commandLine, status, cgroup, parent }, users);
  });
  return seen.filter((process) => process !== undefined);
}

function readTexts(pid: number, names: readonly string[]): Promise<(string | undefined)[]> {
  return Promise.all(names.map((name) => readProc(`/proc/${pid}/${name}`)));
}

/** Device files of the driver that are open, each once; undefined = may not be seen. The leader of a zombie has closed its own; a thread of it may not have. */
async function readDevices(stat: ProcessStat): Promise<string[] | undefined> {
  const folders = hasEnded(stat.state) ? await threadFolders(stat.pid) : [`/proc/${stat.pid}/fd`];
  const found = await Promise.all(folders.map(readOpenFiles));
  if (found.includes('not-permitted')) return undefined;
  return driverFiles(found.flatMap((files) => (Array.isArray(files) ? files : [])));
}

async function threadFolders(pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  return threads.filter((thread) => thread !== String(pid)).map((thread) => `/proc/${pid}/task/${thread}/fd`);
}

async function readMinors(): Promise<ReadonlyMap<number, string>> {
  const cards = await readdir('/proc/driver/nvidia/gpus').catch(() => []);
  const texts = await Promise.all(cards.map((card) => readProc(`/proc/driver/nvidia/gpus/${card}/information`)));
  return parseMinors(texts.filter((text) => text !== undefined));
}
