/** What a survey shows of the process of one server. Pure. */
import type { Health, ProcessSigns } from '../../diagnosis/live/look.ts';
import type { KernelSign } from '../../diagnosis/probe/evidence.ts';
import { insideOf } from '../../machine/contained/inside.ts';
import { listeningInodes } from '../../machine/listeners.ts';
import type { ProcessIdentity, ProcessLook } from '../../machine/machine.ts';
import { hasEnded } from '../../machine/parse-stat.ts';
import { familyOf } from '../../machine/survey/processes.ts';
import type { MemoryGroup, Survey } from '../../machine/survey/survey.ts';
import { type ContainerFacts, endOfContainer } from '../../server/attach/container-facts.ts';
import type { ProbedProcess } from './report.ts';

/** Which process: 0 = not known. `identity` where it was recorded, so that a pid that was given anew is somebody else. */
export interface Wanted {
  readonly pid: number;
  readonly identity: ProcessIdentity | undefined;
  readonly exitStatus: number | undefined;
  /** Of the container that it is in, as docker says it. */
  readonly container: ContainerFacts | undefined;
}

/** No process of it is there, and all can be seen. */
export const NOBODY: ProcessSigns = {
  ...{ presence: 'gone', exitStatus: undefined, residentBytes: undefined, readBytes: undefined, gpuUsedMiB: undefined },
  ...{ compilers: 0, children: 0 },
};

/**
 * Whether no process is the one that wrote the log of an engine. A closed port tells it where the process could be out of sight, in
 * the sibling of a container: but only of a server that had opened it, and only where somebody said that the port is its own.
 */
export function isNobody(seen: {
  /** Every process of the machine, and not only those of a container. */
  readonly seesAll: boolean;
  readonly health: Health['kind'] | undefined;
  readonly isPortTold: boolean;
  readonly wasReady: boolean;
}): boolean {
  const { seesAll, health, isPortTold, wasReady } = seen;
  if (health === 'http' || health === 'timeout') return false;
  return seesAll || (health === 'refused' && isPortTold && wasReady);
}

export function isThere({ table, bootId }: Survey, { pid, identity }: Wanted): boolean {
  if (identity === undefined) return table.has(pid);
  return table.get(identity.pid)?.startTicks === identity.startTicks && identity.bootId === bootId;
}

/** undefined: nobody can tell. */
export function signsOf(survey: Survey, wanted: Wanted): ProcessSigns | undefined {
  const { container } = wanted;
  if (survey.table.size === 0 || wanted.pid === 0) return container === undefined ? undefined : asDockerSays(container);
  const main = isThere(survey, wanted) ? survey.table.get(wanted.pid) : undefined;
  const family = main === undefined ? undefined : familyOf(survey.table, wanted.pid);
  const gpus = survey.gpus?.kind === 'read' ? survey.gpus.gpus : undefined;
  return {
    presence: main === undefined ? 'gone' : hasEnded(main.state) ? 'zombie' : 'running',
    exitStatus: wanted.exitStatus,
    ...(main === undefined && container !== undefined ? endSigns(container) : {}),
    ...{ residentBytes: family?.residentBytes, readBytes: family?.readBytes },
    ...{ compilers: family?.compilers ?? 0, children: family?.children ?? 0 },
    gpuUsedMiB: gpus?.reduce((sum, { usedMiB }) => sum + usedMiB, 0),
  };
}

/** With what docker or Slurm say of the inside: a client that is gone is no server that is gone, and one that is alone has no workers to lose. */
export function withInside(
  signs: ProcessSigns | undefined,
  inside: ProcessLook | undefined,
  isClient: boolean,
): ProcessSigns | undefined {
  if (signs === undefined || inside === undefined || !isClient) return signs;
  const { main, exitStatus, end, family } = inside;
  const children = family.some((member) => insideOf(member) !== undefined) ? undefined : signs.children;
  return { ...signs, presence: main, exitStatus, children, ...(end === undefined ? {} : { end }) };
}

/** Its processes cannot be seen from here, or are gone. One that lives out of sight has no children that could be counted. */
function asDockerSays(container: ContainerFacts): ProcessSigns | undefined {
  if (endOfContainer(container) !== undefined) return { ...NOBODY, ...endSigns(container) };
  return container.pid > 0 ? { ...NOBODY, presence: 'unknown', children: undefined } : undefined;
}

function endSigns(container: ContainerFacts): Pick<ProcessSigns, 'exitStatus' | 'end'> | undefined {
  const end = endOfContainer(container);
  if (end === undefined) return undefined;
  const { exitStatus, says, isOutOfMemory } = end;
  return { exitStatus, end: { says, isOutOfMemory } };
}

export function processOf(survey: Survey, wanted: Wanted): ProbedProcess | undefined {
  const signs = signsOf(survey, wanted);
  if (signs === undefined) return undefined;
  const { usedBytes, limitBytes, oomKills, container } = groupOf(survey, wanted);
  const { presence, exitStatus, residentBytes, children = 0, end } = signs;
  return {
    ...{ pid: wanted.pid, command: commandOf(survey, wanted), presence, ageMs: ageOf(survey, wanted.pid) },
    ...{ exitStatus, residentBytes, children, container, end: end?.says ?? '' },
    memory: {
      ...(usedBytes === undefined ? {} : { usedBytes }),
      ...(limitBytes === undefined ? {} : { limitBytes }),
      ...(oomKills === undefined ? {} : { oomKills }),
    },
  };
}

function commandOf({ table, engines }: Survey, { pid, identity }: Wanted): string {
  return engines.find((one) => one.pid === pid)?.command ?? table.get(pid)?.command ?? identity?.command ?? '';
}

function ageOf({ table, uptimeMs, tickMs }: Survey, pid: number): number | undefined {
  const main = table.get(pid);
  return main === undefined || uptimeMs === 0 ? undefined : Math.max(0, uptimeMs - main.startTicks * tickMs);
}

function groupOf(survey: Survey, { pid, container }: Wanted): MemoryGroup {
  const group = survey.details.get(pid)?.memory ?? (container === undefined ? groupAround(survey) : NO_GROUP);
  if (container === undefined) return group;
  return { ...group, container: `docker-${container.id.slice(0, 12)} (${container.name})` };
}

const NO_GROUP: MemoryGroup = { container: '', limitBytes: undefined, usedBytes: undefined, oomKills: undefined };

/** Of a process that is gone: that of the container that it was in, where that is all there is. */
function groupAround({ ownMemory }: Survey): MemoryGroup {
  const isOne = ownMemory.container !== '' || ownMemory.limitBytes !== undefined;
  return isOne ? ownMemory : NO_GROUP;
}

export function kernelSigns({ kernel, table }: Survey, pid: number): KernelSign[] {
  const ours = new Set([pid, ...familyOf(table, pid).members.map((member) => member.pid)].filter((one) => one > 0));
  return kernel.map(({ kind, text, pids }) => ({ kind, text, isOurs: pids.some((one) => ours.has(one)) }));
}

/** Another engine that listens where this one should; '' = nobody. */
export function holderOfPort({ listeners, engines, details }: Survey, port: number, pid: number): string {
  if (port === 0 || pid === 0) return '';
  const inodes = listeningInodes(listeners, port);
  const other = engines.find((one) => one.pid !== pid && inodes.some((inode) => details.get(one.pid)?.sockets.has(inode)));
  return other === undefined ? '' : `pid ${other.pid}`;
}

/** The engine of a container, else its first process where that is seen to be in it: docker may be another machine's, and its pids then somebody else's here. */
export function pidInContainer({ table, engines, details }: Survey, { id, pid }: ContainerFacts): number {
  if (pid === 0 || !table.has(pid)) return 0;
  const members = new Set(familyOf(table, pid).members.map((member) => member.pid));
  const main = engines.find((one) => members.has(one.pid))?.pid ?? pid;
  const { container = '' } = details.get(main)?.memory ?? {};
  const isIn = container === `docker-${id.slice(0, 12)}`;
  const isEngine = engines.some((one) => one.pid === main);
  return isIn || (isEngine && !container.startsWith('docker-')) ? main : 0;
}
