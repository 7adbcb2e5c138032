/**
 * What a client (docker run, srun) stands for: the container or the step in which the engine really runs. Pure. A look at the client
 * and a look inside become one look at the launch.
 *
 * Promises: a client that is gone is no server that is gone; where it cannot be asked what is inside, that is `unknown`; a container or
 * a step is a member of the launch with an id of its own, which no process of a machine can have.
 */
import type { FamilyMember, ProcessIdentity, ProcessLook } from '../machine.ts';

/** How the inside of a launch is asked for. */
export type Containment =
  /** `control`: words of a shell before `ps`, `inspect` and `kill`: `docker`, `sudo -n docker --context gpu`. */
  { readonly kind: 'container'; readonly control: string } | { readonly kind: 'step' };

/** One container, or one job or step. */
export interface Inside {
  readonly kind: Containment['kind'];
  /** Of a container its whole id, of a job `123`, of a step `123.0`. */
  readonly id: string;
  /** For sentences: `container big_moore`, `job 123`. */
  readonly name: string;
  /** waiting: a job in the queue. made: there, and nothing runs in it. */
  readonly state: 'waiting' | 'running' | 'made' | 'ended';
  /** Of a container its first process, as the machine counts; 0 = not known. */
  readonly pid: number;
  /** Start of that process, where it is seen to be in this container; undefined: pids may be another machine's. */
  readonly startTicks: number | undefined;
  readonly exitStatus: number | undefined;
  readonly isOutOfMemory: boolean;
  /** Node of a job; '' = not known. */
  readonly node: string;
  /** When it ended or what it waits for, as it is told. */
  readonly says: string;
}

/** Stands where a process has the id of its boot. */
const ID_PREFIX: Readonly<Record<Containment['kind'], string>> = { container: 'container ', step: 'step ' };

/** What a signal to this member goes to; undefined: it is a process. */
export function insideOf({ bootId }: ProcessIdentity): Pick<Inside, 'kind' | 'id'> | undefined {
  for (const kind of ['container', 'step'] as const)
    if (bootId.startsWith(ID_PREFIX[kind])) return { kind, id: bootId.slice(ID_PREFIX[kind].length) };
  return undefined;
}

export function lives({ state }: Inside): boolean {
  return state === 'running' || state === 'waiting';
}

export function memberOf({ kind, id, name, pid }: Inside): FamilyMember {
  return {
    ...{ pid: pid === 0 ? Number.parseInt(id, 10) || 0 : pid, startTicks: 0, bootId: `${ID_PREFIX[kind]}${id}`, command: name },
    ...{ parent: 0, presence: 'running', isUninterruptible: false },
  };
}

export interface Seen {
  /** The client, and whoever carries the marker and may be looked into. */
  readonly client: ProcessLook;
  /** From the first process inside, where that is seen. */
  readonly within: ProcessLook | undefined;
  /** undefined: it could not be asked. */
  readonly insides: readonly Inside[] | undefined;
}

export function combineLooks({ client, within, insides }: Seen): ProcessLook {
  if (insides === undefined) return client.main === 'running' ? client : { ...client, main: 'unknown', exitStatus: undefined };
  const living = insides.filter(lives);
  const ended = insides.findLast(({ state }) => state === 'ended');
  const seen = within ?? client;
  const family = new Map([...client.family, ...seen.family].map((member) => [keyOf(member), member]));
  const sums = {
    residentBytes: seen.residentBytes,
    readBytes: seen.readBytes,
    cpuTicks: seen.cpuTicks,
    compilers: seen.compilers,
  };
  return {
    ...(within === undefined && living.some(({ kind }) => kind === 'step') ? UNSEEN : sums),
    main: living.length > 0 ? 'running' : client.main,
    exitStatus: living.length > 0 ? undefined : (ended?.exitStatus ?? client.exitStatus),
    family: [...family.values(), ...living.map(memberOf)],
    ...(living.length > 0 || ended === undefined ? {} : { end: sayEnd(ended) }),
  };
}

/** A step may run on another node: what its client uses here says nothing about it. */
const UNSEEN = { residentBytes: undefined, readBytes: undefined, cpuTicks: undefined, compilers: 0 } as const;

/** `says`: when it ended; '' = not known. */
export function sayEnd({
  name,
  exitStatus,
  isOutOfMemory,
  says,
}: Pick<Inside, 'name' | 'exitStatus' | 'isOutOfMemory' | 'says'>): NonNullable<ProcessLook['end']> {
  const status = exitStatus === undefined ? '' : ` with exit status ${exitStatus}`;
  const memory = isOutOfMemory ? ', killed for lack of memory (OOMKilled)' : '';
  return { says: `${name} ended${status}${says === '' ? '' : ` at ${says}`}${memory}`, isOutOfMemory };
}

function keyOf({ pid, startTicks, bootId }: ProcessIdentity): string {
  return `${pid} ${startTicks} ${bootId}`;
}
