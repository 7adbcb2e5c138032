/**
 * Whether the GPUs' memory is back where it was before a launch, and who holds what is not. A relaunch into memory that
 * somebody holds is the commonest reason of a second failure, so nothing is launched before this says `free`.
 *
 * On failure: a value that says who, how much, and what could not be seen; `describe-holders.ts` makes sentences of it.
 */
import type { Clock } from '../host/host.ts';
import type { GpuReading, Holder, Machine } from '../machine/machine.ts';
import { findHolders } from './find-holders.ts';

/**
 * What a card may use above its baseline and be free: a driver that keeps itself loaded uses 300 to 600 MiB
 * (field figures for idle cards), and the smallest engine takes more than that for its context alone.
 */
export const SLACK_MIB = 512;

export interface OccupiedGpu {
  readonly index: number;
  readonly uuid: string;
  readonly usedMiB: number;
  readonly baselineMiB: number;
  readonly overMiB: number;
}

export interface HeldMemory {
  readonly kind: 'held';
  /** Empty: the cards could not be read, and `unknown` says why. */
  readonly gpus: readonly OccupiedGpu[];
  readonly holders: readonly Holder[];
  /** Pids of holders that belong to the launch itself. */
  readonly ours: readonly number[];
  readonly unknown: readonly string[];
}

export type MemoryOutcome = { readonly kind: 'free' } | HeldMemory;

export interface MemoryRequest {
  readonly machine: Pick<Machine, 'gpus' | 'holders' | 'findByMarker' | 'run' | 'name' | 'isHere'>;
  /** The machine of which this one is a container. */
  readonly outer?: Machine | undefined;
  readonly baseline: readonly GpuReading[];
  readonly clock: Clock;
  readonly withinMs: number;
  /** Marker of the launch that was stopped. */
  readonly ours: string | undefined;
  readonly signal?: AbortSignal;
}

/** nvidia-smi takes a tenth of a second or more, and holds a lock of the driver. */
const LOOK_EVERY_MS = 500;

export async function awaitMemory(request: MemoryRequest): Promise<MemoryOutcome> {
  const { machine, outer, baseline, clock, withinMs, ours, signal } = request;
  if (baseline.length === 0) return { kind: 'free' };
  const endMs = clock.elapsed() + withinMs;
  for (;;) {
    const look = await machine.gpus();
    const gpus = look.kind === 'read' ? occupied(look.gpus, baseline) : [];
    const because = unreadable(look, baseline);
    if (gpus.length === 0 && because === undefined) return { kind: 'free' };
    if (clock.elapsed() >= endMs || signal?.aborted) {
      const { holders, unknown } = await findHolders(machine, outer);
      const marked = ours === undefined ? [] : (await machine.findByMarker(ours)).map(({ pid }) => pid);
      const said = because === undefined ? unknown : [because, ...unknown];
      return { kind: 'held', gpus, holders: onCards(holders, gpus), ours: oursAmong(holders, marked), unknown: said };
    }
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

/** Pids of holders, as they are named, that are members of the launch. */
function oursAmong(holders: readonly Holder[], members: readonly number[]): number[] {
  const isOurs = ({ identity, outside }: Holder) => members.includes(identity?.pid ?? outside?.innerPid ?? 0);
  return [...new Set(holders.filter(isOurs).map(({ pid }) => pid))];
}

/** Cards of the baseline that use more than it and the slack. */
export function occupied(gpus: readonly GpuReading[], baseline: readonly GpuReading[]): OccupiedGpu[] {
  return baseline.flatMap(({ uuid, usedMiB: baselineMiB }) => {
    const now = gpus.find((gpu) => gpu.uuid === uuid);
    if (now === undefined || now.usedMiB - baselineMiB <= SLACK_MIB) return [];
    const { index, usedMiB } = now;
    return [{ index, uuid, usedMiB, baselineMiB, overMiB: usedMiB - baselineMiB }];
  });
}

/** Why nothing can be said of a card of the baseline; undefined where all were read. */
function unreadable(look: Awaited<ReturnType<Machine['gpus']>>, baseline: readonly GpuReading[]): string | undefined {
  if (look.kind === 'absent') return 'memory of the GPUs: nvidia-smi is no longer there';
  if (look.kind === 'failed') return `memory of the GPUs: ${look.because}`;
  const missing = baseline.filter(({ uuid }) => !look.gpus.some((gpu) => gpu.uuid === uuid));
  if (missing.length === 0) return undefined;
  return `memory of GPU ${missing.map(({ index }) => index).join(', ')}: it was there before and is not now. See:  dmesg | grep -i xid`;
}

/** Those of cards that are free are nobody's business; where the card is not known, it may be any. */
function onCards(holders: readonly Holder[], gpus: readonly OccupiedGpu[]): Holder[] {
  return holders.filter(({ gpuUuid }) => gpuUuid === '' || gpus.some(({ uuid }) => uuid === gpuUuid));
}
