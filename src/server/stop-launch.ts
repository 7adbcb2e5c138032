/**
 * Stops a launch: abort its requests, SIGTERM, wait, SIGKILL, until nobody of it runs. Steps:
 *
 *   abort      told to the engine, so that it need not finish what nobody waits for; its failure is noted and no more
 *   terminate  SIGTERM to the program; wait at most `termGraceMs`
 *   kill       SIGKILL to the program and to every member, each by its identity; looked for again until none runs, at most
 *              `killGraceMs`
 *
 * Promises: only what carries the launch's marker, lives in its session or descends from it is signalled, and each only while it is the
 * process that was recorded. On failure: who is left is in the report, with the reason and what can be done.
 */
import type { Clock } from '../host/host.ts';
import type { FamilyMember, Machine, ProcessIdentity, ProcessLook, SignalResult } from '../machine/machine.ts';
import { isOver, isSameProcess, killTargets, type LeftBecause, leftBecause, termTargets } from './decide-stop.ts';

export interface StopRequest {
  readonly machine: Pick<Machine, 'look' | 'signal' | 'run'>;
  readonly launch: {
    readonly identity: ProcessIdentity;
    readonly marker: string;
    readonly statusPath: string;
    /** Members as recorded earlier: one that has lost its marker, its session and its parent is known by nothing else. */
    readonly family?: readonly FamilyMember[];
  };
  /** Tells the engine to drop its requests; may fail, because the engine may be dead. */
  readonly abortRequests?: (signal: AbortSignal) => Promise<void>;
  readonly termGraceMs: number;
  readonly killGraceMs: number;
  readonly clock: Clock;
  /** Aborted: nobody wants to wait any longer. SIGKILL follows at once, and is waited for as long as `killGraceMs` says. */
  readonly signal?: AbortSignal;
}

export type StopStep =
  | { readonly kind: 'aborted-requests'; readonly because: string }
  | {
      readonly kind: 'signalled';
      readonly signal: 'SIGTERM' | 'SIGKILL';
      readonly pid: number;
      readonly command: string;
      readonly result: SignalResult;
    }
  /** Looked until `ms` after the signals; so many still ran. */
  | { readonly kind: 'waited'; readonly ms: number; readonly running: number };

export interface LeftMember extends FamilyMember {
  readonly because: LeftBecause;
  /** For a zombie, who must reap it. */
  readonly parentCommand: string;
}

export interface StopReport {
  readonly steps: readonly StopStep[];
  /** Nobody of it runs. Zombies may be left: they hold no memory of the host, and seldom of a GPU. */
  readonly isStopped: boolean;
  readonly exitStatus: number | undefined;
  readonly left: readonly LeftMember[];
}

/** An engine that answers at all answers this at once. */
const ABORT_MS = 10_000;
/** Engines need seconds to end; ten looks a second cost a hundredth of a core. */
const LOOK_EVERY_MS = 100;

export async function stopLaunch(request: StopRequest): Promise<StopReport> {
  const steps: StopStep[] = [];
  if (request.abortRequests !== undefined) steps.push(await abortAll(request.abortRequests, request.clock));
  const results = new Map<string, SignalResult>();
  const recorded = new Map((request.launch.family ?? []).map((member) => [keyOf(member), member]));
  const stop: Stop = { ...request, steps, results, recorded };
  const first = await lookAt(stop);
  for (const member of termTargets(first, request.launch.identity)) await send(stop, member, 'SIGTERM');
  let look = await waitUntilOver(stop, request.termGraceMs, request.signal);
  if (!isOver(look)) look = await killAll(stop);
  look = await waitForReaping(stop, look);
  return {
    steps,
    isStopped: isOver(look) && look.main !== 'running' && look.main !== 'unknown',
    exitStatus: look.exitStatus,
    left: await describeLeft(stop, look),
  };
}

/** A stop under way. */
interface Stop extends StopRequest {
  readonly steps: StopStep[];
  /** Of the last signal to each, by `keyOf`. */
  readonly results: Map<string, SignalResult>;
  /** Members that were ever seen and not yet seen gone. */
  readonly recorded: Map<string, FamilyMember>;
}

async function abortAll(abort: NonNullable<StopRequest['abortRequests']>, clock: Clock): Promise<StopStep> {
  const given = new AbortController();
  const because = await Promise.race([
    abort(given.signal).then(
      () => '',
      (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
    ),
    clock.sleep(ABORT_MS, given.signal).then(() => `no answer in ${ABORT_MS / 1000} s`),
  ]);
  given.abort();
  return { kind: 'aborted-requests', because };
}

/** Rounds, because a member may start another while it is being ended. */
async function killAll(stop: Stop): Promise<ProcessLook> {
  const { clock, launch, results } = stop;
  const endMs = clock.elapsed() + stop.killGraceMs;
  let look = await lookAt(stop);
  while (!isOver(look)) {
    for (const member of killTargets(look, launch.identity))
      if (results.get(keyOf(member)) !== 'not-permitted') await send(stop, member, 'SIGKILL');
    const leftMs = endMs - clock.elapsed();
    if (leftMs <= 0) return endShell(stop, look);
    look = await waitUntilOver(stop, Math.min(leftMs, KILL_AGAIN_MS), undefined);
  }
  return look;
}

/** Between two rounds of SIGKILL: whom the kernel has not ended by then is not ended by another at once. */
const KILL_AGAIN_MS = 1_000;

/** Orphans are reaped by init, which takes its time in some containers; a parent that reaps nobody is not waited for longer. */
const REAP_MS = 5_000;

async function waitForReaping(stop: Stop, over: ProcessLook): Promise<ProcessLook> {
  const { clock, signal } = stop;
  const endMs = clock.elapsed() + REAP_MS;
  let look = over;
  while (isOver(look) && look.family.length > 0 && clock.elapsed() < endMs && !signal?.aborted) {
    await clock.sleep(LOOK_EVERY_MS, signal);
    look = await lookAt(stop);
  }
  return look;
}

/** Only the waiting shell is left, and does not go: a disk that does not take the exit status. */
async function endShell(stop: Stop, look: ProcessLook): Promise<ProcessLook> {
  if (killTargets(look, stop.launch.identity).length > 0) return look;
  for (const member of look.family) if (member.presence === 'running') await send(stop, member, 'SIGKILL');
  return waitUntilOver(stop, KILL_AGAIN_MS, undefined);
}

/** A signal that is sent again to the same process is one step. */
async function send({ machine, steps, results }: Stop, member: FamilyMember, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const result = await machine.signal(member, signal);
  results.set(keyOf(member), result);
  const { pid, command } = member;
  const isKnown = steps.some(
    (step) => step.kind === 'signalled' && step.pid === pid && step.command === command && step.signal === signal,
  );
  if (!isKnown) steps.push({ kind: 'signalled', signal, pid, command, result });
}

async function waitUntilOver(stop: Stop, withinMs: number, signal: AbortSignal | undefined): Promise<ProcessLook> {
  const { clock, steps } = stop;
  const beganMs = clock.elapsed();
  for (;;) {
    const look = await lookAt(stop);
    const ms = clock.elapsed() - beganMs;
    if (isOver(look) || ms >= withinMs || signal?.aborted) {
      const running = look.family.filter(({ presence }) => presence !== 'zombie').length;
      steps.push({ kind: 'waited', ms: Math.round(ms), running });
      return look;
    }
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

/** The family as it is found now, and those that were recorded, are there, and are no longer found by any sign. */
async function lookAt({ machine, launch, recorded }: Stop): Promise<ProcessLook> {
  const look = await machine.look(launch.identity, launch);
  const found = new Set(look.family.map(keyOf));
  const strays: FamilyMember[] = [];
  for (const [key, member] of recorded) {
    if (found.has(key)) continue;
    const alone = await machine.look(member, launch);
    if (alone.main === 'gone') recorded.delete(key);
    else strays.push({ ...(alone.family.find((other) => isSameProcess(other, member)) ?? member), presence: alone.main });
  }
  for (const member of look.family) recorded.set(keyOf(member), member);
  return strays.length === 0 ? look : { ...look, family: [...look.family, ...strays] };
}

function keyOf({ pid, startTicks, bootId }: ProcessIdentity): string {
  return `${pid} ${startTicks} ${bootId}`;
}

async function describeLeft({ machine, results }: Stop, look: ProcessLook): Promise<LeftMember[]> {
  return Promise.all(
    look.family.map(async (member) => ({
      ...member,
      because: leftBecause(member, results.get(keyOf(member))),
      parentCommand: await readCommandOf(machine, member.parent),
    })),
  );
}

/** '' = not known. A parent may be anybody's, so its command line is asked of the system. */
async function readCommandOf(machine: StopRequest['machine'], pid: number): Promise<string> {
  const result = await machine.run({ file: 'cat', args: [`/proc/${pid}/cmdline`], timeoutMs: 10_000 });
  return result.kind === 'ended' && result.code === 0 ? result.stdout.split('\0').join(' ').trim() : '';
}
