/** Waits for a way to another machine: one over ssh is there after some hundred milliseconds. */
import type { Clock } from '../host/host.ts';
import type { Reach } from './machine.ts';

const LOOK_EVERY_MS = 50;

/** False: the signal aborted, or the time of the clock was over, before. Throws `machine.refused` where waiting is in vain. */
export async function untilOpen(
  reach: Pick<Reach, 'isOpen' | 'refusal'>,
  clock: Clock,
  untilMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  while (!reach.isOpen() && clock.elapsed() < untilMs && !signal.aborted) {
    const refused = reach.refusal();
    if (refused !== undefined) throw refused;
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
  return reach.isOpen();
}
