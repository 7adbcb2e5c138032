/**
 * Who holds memory of the GPUs here. Gathers for `holder-facts.ts`; what may not be seen is said, with the command for
 * someone who may.
 */
import { existsSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { type CommandResult, runCommand } from '../../host/commands.ts';
import type { Host } from '../../host/host.ts';
import { containerOf } from '../cgroup.ts';
import { findHolders, type SeenProcess } from '../holder-facts.ts';
import type { GpuLook, HoldersLook } from '../machine.ts';
import { NVIDIA_SMI_MS, parseComputeApps, parseGpus, QUERY_COMPUTE_APPS, QUERY_GPUS } from '../nvidia-smi.ts';
import { hasEnded, type ProcessStat } from '../parse-stat.ts';
import { hasProc, readAllStats, readBootId, readCommand, readOpenFiles, readProc } from './proc.ts';

export async function readGpus(host: Host): Promise<GpuLook> {
  const result = await nvidiaSmi(host, QUERY_GPUS);
  if (result.kind === 'absent') return { kind: 'absent' };
  return typeof result === 'object' && result.kind === 'ended' && result.code === 0
    ? parseGpus(result.stdout)
    : { kind: 'failed', because: describeFailure(result) };
}

export async function lookForHolders(host: Host): Promise<HoldersLook> {
  const result = await nvidiaSmi(host, QUERY_COMPUTE_APPS);
  const hasDevices = existsSync('/dev/nvidiactl');
  if (result.kind === 'absent' && !hasDevices) return { holders: [], unknown: [] };
  const said = result.kind === 'ended' && result.code === 0 ? parseComputeApps(result.stdout) : undefined;
  const processes = hasProc() ? await seeProcesses(said?.apps.map(({ pid }) => pid) ?? []) : [];
  const holders = findHolders({
    apps: said?.apps ?? [],
    processes,
    hasDevices,
    uuidByMinor: await readMinors(),
  });
  const unknown = [
    ...(said === undefined ? [`who computes: ${describeFailure(result)}. On this machine:  ${LIST_APPS}`] : []),
    ...(said?.isWhole === false ? [`who computes: nvidia-smi may not tell all of it. As root:  sudo ${LIST_APPS}`] : []),
    ...describeUnseen(processes),
    ...((await isOwnNamespace()) ? [`processes outside this container. On its host:  ${LIST_APPS}`] : []),
  ];
  return { holders, unknown };
}

const LIST_APPS = 'nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv';

/** The pid namespace that a kernel starts with: PROC_PID_INIT_INO. */
const FIRST_PID_NAMESPACE = 'pid:[4026531836]';

async function isOwnNamespace(): Promise<boolean> {
  const name = await readlink('/proc/self/ns/pid').catch(() => '');
  return name !== '' && name !== FIRST_PID_NAMESPACE;
}

function nvidiaSmi(host: Host, args: readonly string[]): Promise<CommandResult> {
  return runCommand({ file: 'nvidia-smi', args, env: host.env, timeoutMs: NVIDIA_SMI_MS });
}

function describeFailure(result: CommandResult): string {
  switch (result.kind) {
    case 'ended': {
      const words = `${result.stdout}\n${result.stderr}`.trim().split('\n')[0] ?? '';
      return `nvidia-smi ended with ${result.code}${words === '' ? '' : `: ${words}`}`;
    }
    case 'absent':
      return 'nvidia-smi is not installed here';
    case 'timeout':
      return `nvidia-smi did not answer in ${NVIDIA_SMI_MS / 1000} s`;
    case 'aborted':
      return 'nvidia-smi was not waited for';
    case 'died':
      return result.because;
  }
}

function describeUnseen(processes: readonly SeenProcess[]): string[] {
  const hidden = processes.filter(({ usesDriver, isZombie }) => usesDriver === undefined && !isZombie).length;
  if (hidden === 0) return [];
  return [`open files of ${hidden} processes of other users. As root:  sudo fuser -v /dev/nvidia*`];
}

/** Those that bear on GPUs: listed ones, those with a device open, and those that may not be looked into. */
async function seeProcesses(listed: readonly number[]): Promise<SeenProcess[]> {
  const [stats, bootId, users] = await Promise.all([readAllStats(), readBootId(), readUsers()]);
  const byPid = new Map(stats.map((stat) => [stat.pid, stat]));
  const seen = await Promise.all(
    stats.map(async (stat) => {
      const devices = await readDevices(stat);
      const isKernel = stat.pid === 2 || stat.parent === 2; // kthreadd and its threads hold no files
      const bears = listed.includes(stat.pid) || (!isKernel && (devices === undefined || devices.length > 0));
      return bears ? describe(stat, devices, { bootId, users, byPid }) : undefined;
    }),
  );
  return seen.filter((process) => process !== undefined);
}

interface Around {
  readonly bootId: string;
  readonly users: ReadonlyMap<string, string>;
  readonly byPid: ReadonlyMap<number, ProcessStat>;
}

async function describe(stat: ProcessStat, devices: readonly string[] | undefined, around: Around): Promise<SeenProcess> {
  const [status, cgroup] = await Promise.all(['status', 'cgroup'].map((name) => readProc(`/proc/${stat.pid}/${name}`)));
  const uid = /^Uid:\s+(\d+)/m.exec(status ?? '')?.[1] ?? '';
  const isZombie = hasEnded(stat.state);
  const parent = around.byPid.get(stat.parent);
  return {
    ...{ pid: stat.pid, startTicks: stat.startTicks, bootId: around.bootId, command: await readCommand(stat) },
    ...{ name: stat.name, user: around.users.get(uid) ?? uid, container: containerOf(cgroup ?? ''), isZombie },
    parent: isZombie && parent !== undefined ? { pid: parent.pid, command: await readCommand(parent) } : undefined,
    openMinors: devices?.flatMap((path) => /^\/dev\/nvidia(\d+)$/.exec(path)?.[1] ?? []).map(Number),
    usesDriver: devices === undefined ? undefined : devices.length > 0,
  };
}

/** Device files of the driver that are open, each once; undefined = may not be seen. The leader of a zombie has closed its own; a thread of it may not have. */
async function readDevices(stat: ProcessStat): Promise<string[] | undefined> {
  const folders = hasEnded(stat.state) ? await threadFolders(stat.pid) : [`/proc/${stat.pid}/fd`];
  const found = await Promise.all(folders.map(readOpenFiles));
  if (found.includes('not-permitted')) return undefined;
  const files = found.flatMap((files) => (Array.isArray(files) ? files : []));
  return [...new Set(files.filter((file) => file.startsWith('/dev/nvidia')))];
}

async function threadFolders(pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  return threads.filter((thread) => thread !== String(pid)).map((thread) => `/proc/${pid}/task/${thread}/fd`);
}

/** Name by uid, as this machine writes them down. */
async function readUsers(): Promise<ReadonlyMap<string, string>> {
  const lines = ((await readProc('/etc/passwd')) ?? '').split('\n').map((line) => line.split(':'));
  return new Map(lines.map(([name = '', , uid = '']) => [uid, name]));
}

async function readMinors(): Promise<ReadonlyMap<number, string>> {
  const cards = await readdir('/proc/driver/nvidia/gpus').catch(() => []);
  const entries = await Promise.all(
    cards.map(async (card) => {
      const text = (await readProc(`/proc/driver/nvidia/gpus/${card}/information`)) ?? '';
      const uuid = /^GPU UUID:\s+(\S+)/m.exec(text)?.[1];
      const minor = /^Device Minor:\s+(\d+)/m.exec(text)?.[1];
      return uuid === undefined || minor === undefined ? undefined : ([Number(minor), uuid] as const);
    }),
  );
  return new Map(entries.filter((entry) => entry !== undefined));
}
