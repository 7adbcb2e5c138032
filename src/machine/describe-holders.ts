/**
 * Who holds memory of the GPUs: what a machine gathered (nvidia-smi, open files, /proc) put into words, and what could not be
 * seen with the command for someone who may. Pure; `holder-facts.ts` decides who is who.
 */
import type { CommandResult } from '../host/commands.ts';
import { containerOf } from './cgroup.ts';
import { commandOf } from './describe-look.ts';
import { findHolders, type SeenProcess } from './holder-facts.ts';
import type { GpuLook, HoldersLook } from './machine.ts';
import { NVIDIA_SMI_MS, parseComputeApps, parseGpus } from './nvidia-smi.ts';
import { hasEnded, type ProcessStat } from './parse-stat.ts';

export function gpuLookOf(result: CommandResult): GpuLook {
  if (result.kind === 'absent') return { kind: 'absent' };
  return result.kind === 'ended' && result.code === 0
    ? parseGpus(result.stdout)
    : { kind: 'failed', because: describeFailure(result) };
}

export interface HoldersSeen {
  /** What nvidia-smi answered to `QUERY_COMPUTE_APPS`. */
  readonly result: CommandResult;
  readonly hasDevices: boolean;
  readonly processes: readonly SeenProcess[];
  readonly uuidByMinor: ReadonlyMap<number, string>;
  /** The link /proc/self/ns/pid; '' = not known. */
  readonly pidNamespace: string;
}

export function describeHolders({ result, hasDevices, processes, uuidByMinor, pidNamespace }: HoldersSeen): HoldersLook {
  if (result.kind === 'absent' && !hasDevices) return { holders: [], unknown: [] };
  const said = result.kind === 'ended' && result.code === 0 ? parseComputeApps(result.stdout) : undefined;
  const holders = findHolders({ apps: said?.apps ?? [], processes, hasDevices, uuidByMinor });
  const unknown = [
    ...(said === undefined ? [`who computes: ${describeFailure(result)}. On this machine:  ${LIST_APPS}`] : []),
    ...(said?.isWhole === false ? [`who computes: nvidia-smi may not tell all of it. As root:  sudo ${LIST_APPS}`] : []),
    ...describeUnseen(processes),
    ...(pidNamespace !== '' && pidNamespace !== FIRST_PID_NAMESPACE
      ? [`processes outside this container. On its host:  ${LIST_APPS}`]
      : []),
  ];
  return { holders, unknown };
}

const LIST_APPS = 'nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv';

/** The pid namespace that a kernel starts with: PROC_PID_INIT_INO. */
const FIRST_PID_NAMESPACE = 'pid:[4026531836]';

/** Pids that nvidia-smi lists. */
export function listedPids(result: CommandResult): readonly number[] {
  return result.kind === 'ended' && result.code === 0 ? parseComputeApps(result.stdout).apps.map(({ pid }) => pid) : [];
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

/** Device files of the driver among open files, each once. */
export function driverFiles(files: readonly string[]): string[] {
  return [...new Set(files.filter((file) => file.startsWith('/dev/nvidia')))];
}

/** Listed ones, those with a device open, and those that may not be looked into. kthreadd and its threads hold no files. */
export function bearsOnGpus(stat: ProcessStat, devices: readonly string[] | undefined, listed: readonly number[]): boolean {
  const isKernel = stat.pid === 2 || stat.parent === 2;
  return listed.includes(stat.pid) || (!isKernel && (devices === undefined || devices.length > 0));
}

export interface ProcessTexts {
  readonly stat: ProcessStat;
  /** undefined = may not be seen. */
  readonly devices: readonly string[] | undefined;
  readonly bootId: string;
  /** /proc/PID/cmdline, status and cgroup; '' where they may not be read. */
  readonly commandLine: string;
  readonly status: string;
  readonly cgroup: string;
  /** Where it is a zombie. */
  readonly parent: { readonly stat: ProcessStat; readonly commandLine: string } | undefined;
}

export function describeProcess(texts: ProcessTexts, users: ReadonlyMap<string, string>): SeenProcess {
  const { stat, devices, bootId, commandLine, status, cgroup, parent } = texts;
  const uid = /^Uid:\s+(\d+)/m.exec(status)?.[1] ?? '';
  const isZombie = hasEnded(stat.state);
  return {
    ...{ pid: stat.pid, startTicks: stat.startTicks, bootId, command: commandOf(stat.name, commandLine) },
    ...{ name: stat.name, user: users.get(uid) ?? uid, container: containerOf(cgroup), isZombie },
    parent:
      isZombie && parent !== undefined
        ? { pid: parent.stat.pid, command: commandOf(parent.stat.name, parent.commandLine) }
        : undefined,
    openMinors: devices?.flatMap((path) => /^\/dev\/nvidia(\d+)$/.exec(path)?.[1] ?? []).map(Number),
    usesDriver: devices === undefined ? undefined : devices.length > 0,
  };
}

/** Name by uid, as /etc/passwd writes them down. */
export function parseUsers(passwd: string): ReadonlyMap<string, string> {
  const lines = passwd.split('\n').map((line) => line.split(':'));
  return new Map(lines.map(([name = '', , uid = '']) => [uid, name]));
}

/** UUID by minor number, from /proc/driver/nvidia/gpus/CARD/information. */
export function parseMinors(information: readonly string[]): ReadonlyMap<number, string> {
  const entries = information.map((text) => {
    const uuid = /^GPU UUID:\s+(\S+)/m.exec(text)?.[1];
    const minor = /^Device Minor:\s+(\d+)/m.exec(text)?.[1];
    return uuid === undefined || minor === undefined ? undefined : ([Number(minor), uuid] as const);
  });
  return new Map(entries.filter((entry) => entry !== undefined));
}
