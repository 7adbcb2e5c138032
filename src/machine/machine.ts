/**
 * Where commands run: this machine, or one behind ssh. One interface and one contract suite (`test/contracts/machine.ts`), so
 * that a server's life does not know where it is lived.
 *
 * Promises: a process is known by its identity (pid, start time, command line) and never by its pid alone; nothing is
 * signalled that is not what was recorded; what may not be seen is `unknown` and said so, never guessed to be absent; a
 * machine that cannot be reached is no machine on which nothing runs.
 * On failure: questions answer with values (`absent`, `unknown`, `timeout`). `start` throws `server.did-not-start`. Where the
 * machine is out of reach every question waits until it is back, at most as long as the machine was opened for, and then throws
 * `machine.unreachable`; so does `start`, at once, because only a look at the machine tells whether it was started.
 */
import type { AerieError } from '../base/errors.ts';
import type { CommandResult } from '../host/commands.ts';

/** What tells one process from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks since boot. */
  readonly startTicks: number;
  /** /proc/sys/kernel/random/boot_id: pids and ticks begin anew at every boot. */
  readonly bootId: string;
  /** The command line when it was recorded, arguments with spaces between. It may retitle itself later. */
  readonly command: string;
}

/** A program that outlives whoever starts it. */
export interface DetachedStart {
  /** Shell lines before the command, as `conda activate sglang`. */
  readonly setup: readonly string[];
  /** Words of the command as the shell reads them; arguments are already quoted. */
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workFolder: string;
  /** stdout and stderr are appended here. */
  readonly logPath: string;
  /** The exit status is written here when the program ends, whoever lives then: `0`, `137`. */
  readonly statusPath: string;
  /** Given to the program and its children as AERIE_LAUNCH: what carries it belongs to this launch. */
  readonly marker: string;
}

export type ProcessPresence = 'running' | 'zombie' | 'gone' | 'unknown';

/** One look at a launch: its main process and everything that carries its marker or lives in its session. */
export interface ProcessLook {
  readonly main: ProcessPresence;
  /** From the status file; undefined while it runs, and where nobody could write it. */
  readonly exitStatus: number | undefined;
  readonly family: readonly FamilyMember[];
  /** Signs of progress, summed over the family; undefined where they may not be read. */
  readonly residentBytes: number | undefined;
  readonly readBytes: number | undefined;
  readonly cpuTicks: number | undefined;
  /** Compilers among the family: ninja, nvcc, cicc, ptxas, cc1plus, gcc, clang. */
  readonly compilers: number;
  /** How what it ran in ended, a container for instance, where somebody else knows it. */
  readonly end?: { readonly says: string; readonly isOutOfMemory: boolean };
}

export interface FamilyMember extends ProcessIdentity {
  readonly parent: number;
  readonly presence: ProcessPresence;
  /** D: in the kernel and not to be killed; the memory comes back when it returns. */
  readonly isUninterruptible: boolean;
}

export interface GpuReading {
  readonly index: number;
  readonly uuid: string;
  readonly name: string;
  readonly usedMiB: number;
  readonly totalMiB: number;
  readonly utilisationPercent: number | undefined;
}

/** `absent`: no nvidia-smi here. `failed`: there is one, and it said something else. */
export type GpuLook =
  | { readonly kind: 'read'; readonly gpus: readonly GpuReading[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly because: string };

/** Someone who holds memory of a GPU, or may. */
export interface Holder {
  readonly pid: number;
  /** undefined: it is not in this pid namespace, so its pid is the host's. */
  readonly identity: ProcessIdentity | undefined;
  readonly name: string;
  readonly user: string;
  /** undefined: known by its open files only. */
  readonly usedMiB: number | undefined;
  readonly gpuUuid: string;
  /** How it was found. */
  readonly by: 'compute-apps' | 'open-files' | 'zombie';
  /** Its parent where it is a zombie: only the parent can reap it. */
  readonly parent: { readonly pid: number; readonly command: string } | undefined;
  /** `docker-<id>`, `lxc/101`, as /proc/PID/cgroup says it; '' = not known or none. */
  readonly container: string;
  /** The machine around this one told who it is: `pid` is of there, and so is this identity. */
  readonly outside?: {
    readonly machine: string;
    readonly identity: ProcessIdentity;
    /** The same process here; undefined: it is in another container. */
    readonly innerPid: number | undefined;
  };
}

export interface HoldersLook {
  readonly holders: readonly Holder[];
  /** What could not be seen, each with the command for someone who may: `sudo fuser -v /dev/nvidia*`. */
  readonly unknown: readonly string[];
}

export type SignalResult = 'sent' | 'gone' | 'not-permitted' | 'another-process';

export interface Resources {
  /** The smaller of MemAvailable and what the cgroup leaves; undefined = not known. */
  readonly memoryAvailableBytes: number | undefined;
  readonly sharedMemoryFreeBytes: number | undefined;
  /** Free bytes of the file system of each path asked for, in order. */
  readonly diskFreeBytes: readonly (number | undefined)[];
}

export interface PortOwner {
  readonly port: number;
  /** undefined: someone listens, and who may not be seen. */
  readonly pid: number | undefined;
  readonly command: string;
}

/** A way from here to a port of the machine. */
export interface Reach {
  /** `http://127.0.0.1:PORT`, a port of this machine (or the address asked for, where the machine is this one); it stays the same when the way is built again after a drop. */
  readonly baseUrl: string;
  /** The way is there now, so that what a request meets is the server's doing. Always true on this machine. */
  isOpen(): boolean;
  /** How often it has been lost since it was opened: what was under way then was no fault of the server. Always 0 on this machine. */
  drops(): number;
  /** Why there will be no way (`machine.refused`): the machine lets nobody through to that port, or has never let anybody in. Always undefined on this machine. */
  refusal(): AerieError | undefined;
  close(): Promise<void>;
}

/** The machine went out of reach, or came back. */
export interface ReachChange {
  readonly isAway: boolean;
  /** What ssh said; '' where it is back. */
  readonly because: string;
  /** For how long it was away; 0 where it goes. */
  readonly awayMs: number;
}

export interface Machine {
  /** For sentences: `this machine`, `gpu-box`. */
  readonly name: string;
  /** This one: paths of here are paths of there, and its loopback is ours. */
  readonly isHere: boolean;
  /** Absolute path of the user's home folder there. */
  home(): Promise<string>;
  /** A way to a port there, kept open until it is closed; never throws, the way may come later. `address`: where it listens there, loopback as a rule. */
  reach(port: number, address?: string): Promise<Reach>;
  /** Told each time the machine goes out of reach and comes back, until the answer is called. */
  onReachChange(listener: (change: ReachChange) => void): () => void;
  /** Ends connections and ways; what was started there goes on. */
  close(): Promise<void>;
  /** A short command, to its end. One that may run twice: where the machine goes out of reach it is run again. */
  run(request: {
    readonly file: string;
    readonly args: readonly string[];
    readonly timeoutMs: number;
    readonly env?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  }): Promise<CommandResult>;
  /** Returns when the program's process is there and recorded. Throws `server.did-not-start` where it is not. */
  start(request: DetachedStart): Promise<ProcessIdentity>;
  look(identity: ProcessIdentity, launch: Pick<DetachedStart, 'marker' | 'statusPath'>): Promise<ProcessLook>;
  /** Processes that carry the marker, the first started first: finds what was started when the starter died at once. */
  findByMarker(marker: string): Promise<readonly FamilyMember[]>;
  /** Only if the process is still the one that was recorded. */
  signal(identity: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL'): Promise<SignalResult>;
  gpus(): Promise<GpuLook>;
  holders(): Promise<HoldersLook>;
  resources(paths: readonly string[]): Promise<Resources>;
  /** undefined: the port is free. */
  portOwner(port: number): Promise<PortOwner | undefined>;
  /** Bytes of a file from an offset, at most `most`; undefined = no such file. */
  readFile(
    path: string,
    offset: number,
    most: number,
  ): Promise<{ readonly bytes: Uint8Array; readonly size: number } | undefined>;
}
