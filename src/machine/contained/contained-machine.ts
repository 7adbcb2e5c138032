/**
 * A machine as one launch by `docker run`, `podman run` or `srun` needs it: what the machine says of the client, and what docker or
 * Slurm say of the inside, as one. Everything else is the machine's own.
 *
 * Promises: only what carries the launch's label or name is looked at, signalled and removed; what cannot be asked is `unknown`.
 */
import { AerieError } from '../../base/errors.ts';
import type { CommandResult } from '../../host/commands.ts';
import type { DetachedStart, FamilyMember, Machine, ProcessIdentity, ProcessLook, SignalResult } from '../machine.ts';
import { followContainer, listContainers, parseContainers, removeContainers, signalContainer } from './containers.ts';
import { type Containment, combineLooks, type Inside, insideOf, lives, memberOf } from './inside.ts';
import { listSteps, parseSteps, signalStep } from './steps.ts';

export interface ContainedMachine extends Machine {
  /** What the launch has started inside, the oldest first; undefined: it cannot be asked. */
  insides(marker: string): Promise<readonly Inside[] | undefined>;
  /** Where the last look found the client gone and the container alive: its output goes on into the log, once, however often it is asked for. */
  keepLog(launch: KeptLog): Promise<void>;
  /** Takes away what has ended, once how it ended is on the disk. */
  clear(marker: string): Promise<void>;
}

export type KeptLog = Pick<DetachedStart, 'marker' | 'statusPath' | 'logPath'>;

/** docker answers in tens of milliseconds; a daemon that pulls or prunes takes seconds, Slurm's controller under load more. */
const ASK_MS = 30_000;

/** `env`: of the launch, because it may say where docker is (DOCKER_HOST). */
export function containedMachine(
  machine: Machine,
  containment: Containment,
  env: Readonly<Record<string, string>> = {},
): ContainedMachine {
  const ask = (script: string): Promise<CommandResult> =>
    machine.run({ file: 'sh', args: ['-c', script], timeoutMs: ASK_MS, env: { ...env } });
  const insides = async (marker: string): Promise<readonly Inside[] | undefined> => {
    const isContainer = containment.kind === 'container';
    const result = await ask(isContainer ? listContainers(containment.control, marker) : listSteps(marker));
    if (result.kind !== 'ended' || result.code !== 0) return undefined;
    return isContainer ? parseContainers(result.stdout) : parseSteps(result.stdout, marker);
  };
  const contained: Inner = { machine, containment, ask, insides, orphaned: { isSeen: false } };
  return {
    ...machine,
    insides,
    look: (identity, launch) => look(contained, identity, launch),
    async findByMarker(marker) {
      const [found, inside] = await Promise.all([machine.findByMarker(marker), insides(marker)]);
      return [...found, ...(inside ?? []).filter(lives).map(memberOf)];
    },
    signal: (identity, signal) => send(contained, identity, signal),
    keepLog: (launch) => keepLog(contained, launch, env),
    clear: (marker) => clear(contained, marker),
  };
}

interface Inner {
  readonly machine: Machine;
  readonly containment: Containment;
  readonly ask: (script: string) => Promise<CommandResult>;
  readonly insides: ContainedMachine['insides'];
  /** The last look found the inside alive and the client gone. */
  readonly orphaned: { isSeen: boolean };
}

async function look(
  { machine, insides, orphaned }: Inner,
  identity: ProcessIdentity,
  launch: Pick<DetachedStart, 'marker' | 'statusPath'>,
): Promise<ProcessLook> {
  const asked = insideOf(identity);
  const [client, inside] = await Promise.all([machine.look(identity, launch), insides(launch.marker)]);
  if (asked !== undefined) return { ...client, main: presenceOf(asked, inside) };
  orphaned.isSeen = (client.main === 'gone' || client.main === 'zombie') && inside?.some(lives) === true;
  const first = inside?.find((one) => lives(one) && one.startTicks !== undefined);
  const pid =
    first === undefined ? undefined : { ...memberOf(first), bootId: identity.bootId, startTicks: first.startTicks ?? 0 };
  const isSeen =
    pid === undefined || client.family.some((member) => member.pid === pid.pid && member.startTicks === pid.startTicks);
  const within = isSeen || pid === undefined ? undefined : await machine.look(pid, launch);
  const isHere = inside?.some(({ kind }) => kind === 'step') === true && client.family.some(isNoClient);
  return combineLooks({ client, within: isHere ? client : within, insides: inside });
}

/** A member of a launch by srun that is neither srun nor the shell that waits for it: the step runs on this machine. */
function isNoClient({ command, presence }: FamilyMember): boolean {
  return presence === 'running' && !/(?:^|\/| )(?:srun|bash -s|sh -s)(?: |$)/.test(command.split(' ').slice(0, 3).join(' '));
}

/** How one container or step is that was a member before. */
function presenceOf({ id }: Pick<Inside, 'id'>, inside: readonly Inside[] | undefined): ProcessLook['main'] {
  if (inside === undefined) return 'unknown';
  return inside.some((one) => one.id === id && lives(one)) ? 'running' : 'gone';
}

async function send(
  { machine, containment, ask }: Inner,
  identity: ProcessIdentity,
  signal: 'SIGTERM' | 'SIGKILL',
): Promise<SignalResult> {
  const inside = insideOf(identity);
  if (inside === undefined) return machine.signal(identity, signal);
  if (inside.kind !== containment.kind) return 'another-process';
  const result = await ask(
    containment.kind === 'container' ? signalContainer(containment.control, inside.id, signal) : signalStep(inside.id, signal),
  );
  if (result.kind === 'ended' && result.code === 0) return 'sent';
  const said = result.kind === 'ended' ? result.stderr : '';
  return /not running|no such container|invalid job|already completed|no container with/i.test(said) ? 'gone' : 'not-permitted';
}

/** The marker of whoever writes the log on: it is no member of the launch, and ends by itself when the container does. */
function logMarkerOf(marker: string): string {
  return `${marker}-log`;
}

async function keepLog(
  { machine, containment, insides, orphaned }: Inner,
  { marker, statusPath, logPath }: KeptLog,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  if (containment.kind !== 'container' || !orphaned.isSeen) return; // Slurm keeps no output that srun has not written
  const living = (await insides(marker))?.find(lives);
  const writers = await machine.findByMarker(logMarkerOf(marker));
  if (living === undefined || writers.some(({ presence }) => presence === 'running')) return;
  const command = followContainer(containment.control, living.id, logPath);
  const writer = { command, env, logPath, statusPath: `${statusPath}.log`, marker: logMarkerOf(marker) };
  // A line that was cut, a disk that is full: the server lives all the same, and the next look tries again.
  await machine.start({ setup: [], workFolder: '/', ...writer }).catch((thrown: unknown) => {
    if (!(thrown instanceof AerieError)) throw thrown;
  });
}

async function clear({ machine, containment, ask }: Inner, marker: string): Promise<void> {
  if (containment.kind !== 'container') return;
  await ask(removeContainers(containment.control, marker));
  for (const writer of await machine.findByMarker(logMarkerOf(marker))) await machine.signal(writer, 'SIGTERM');
}
