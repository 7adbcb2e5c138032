/**
 * Ends a process that Aerie did not start, because a person named its pid with --kill-holder. Only one that is really among
 * the holders seen now, by its identity; its siblings and children are left alone. One that only the machine around this one sees is
 * ended there.
 */

import type { Clock } from '../host/host.ts';
import type { GpuReading, Holder, Machine, ProcessIdentity, SignalResult } from '../machine/machine.ts';
import { findHolders } from './find-holders.ts';
import { awaitMemory, type MemoryOutcome } from './gpu-memory.ts';

export interface KillHolderRequest {
  readonly machine: Machine;
  /** The machine of which this one is a container. */
  readonly outer?: Machine | undefined;
  readonly pid: number;
  readonly baseline: readonly GpuReading[];
  readonly clock: Clock;
  readonly termGraceMs: number;
  readonly killGraceMs: number;
  /** How long its memory may take to come back after it has ended. */
  readonly withinMs: number;
  readonly signal?: AbortSignal;
}

export type KillHolderOutcome =
  /** It has ended; whether the cards are free now. */
  | {
      readonly kind: 'ended';
      readonly holder: Holder;
      readonly by: 'SIGTERM' | 'SIGKILL' | 'itself';
      readonly memory: MemoryOutcome;
    }
  /** Nothing was signalled: no holder here has this pid. */
  | { readonly kind: 'not-a-holder'; readonly holders: readonly Holder[] }
  /** Nothing was signalled: a zombie takes no signal, and a pid of the host is nobody here. */
  | { readonly kind: 'out-of-reach'; readonly holder: Holder }
  /** It is another user's, or the kernel has not ended it. */
  | { readonly kind: 'stays'; readonly holder: Holder; readonly because: 'not-permitted' | 'ending' };

/** Ten looks a second cost a hundredth of a core. */
const LOOK_EVERY_MS = 100;

export async function killHolder(request: KillHolderRequest): Promise<KillHolderOutcome> {
  const { machine, outer, pid, baseline, clock, withinMs, signal } = request;
  const { holders } = await findHolders(machine, outer);
  const named = holders.filter((holder) => holder.pid === pid);
  const holder = named.find(({ identity }) => identity !== undefined) ?? named[0];
  if (holder === undefined) return { kind: 'not-a-holder', holders };
  const identity = holder.identity ?? holder.outside?.identity;
  const where = holder.identity === undefined ? outer : machine;
  if (identity === undefined || where === undefined || holder.by === 'zombie') return { kind: 'out-of-reach', holder };
  const by = await end({ ...request, machine: where }, identity);
  if (by === 'not-permitted' || by === 'ending') return { kind: 'stays', holder, because: by };
  const memory = await awaitMemory({ machine, outer, baseline, clock, withinMs, ours: undefined, ...(signal && { signal }) });
  return { kind: 'ended', holder, by, memory };
}

type End = 'SIGTERM' | 'SIGKILL' | 'itself' | 'not-permitted' | 'ending';

async function end(request: KillHolderRequest, identity: ProcessIdentity): Promise<End> {
  const asked = await request.machine.signal(identity, 'SIGTERM');
  if (asked !== 'sent') return afterRefusal(asked);
  if (await isGoneWithin(request, identity, request.termGraceMs)) return 'SIGTERM';
  const killed = await request.machine.signal(identity, 'SIGKILL');
  if (killed !== 'sent') return afterRefusal(killed);
  return (await isGoneWithin(request, identity, request.killGraceMs)) ? 'SIGKILL' : 'ending';
}

/** Where it is gone, or its pid is another process by now, it has ended itself meanwhile. */
function afterRefusal(result: Exclude<SignalResult, 'sent'>): End {
  return result === 'not-permitted' ? 'not-permitted' : 'itself';
}

async function isGoneWithin(
  { machine, clock, signal }: KillHolderRequest,
  identity: ProcessIdentity,
  withinMs: number,
): Promise<boolean> {
  const endMs = clock.elapsed() + withinMs;
  for (;;) {
    const { main } = await machine.look(identity, NO_LAUNCH);
    if (main === 'gone' || main === 'zombie') return true;
    if (clock.elapsed() >= endMs || signal?.aborted) return false;
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

/** Its process alone is looked at: no program carries this marker. */
const NO_LAUNCH = { marker: 'nobody', statusPath: '/nobody' } as const;
