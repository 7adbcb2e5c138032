/** A question to a machine that is out of reach waits: nobody is left to wonder what for. */
import { formatDuration } from '../../base/units.ts';
import type { Machine } from '../../machine/machine.ts';
import type { OperationContext } from '../context.ts';

/** `soFar`: what it has done to the servers there, for whoever waits; '' = nobody can say. Returns what ends the saying. */
export function sayWhenNotReached(
  machine: Machine,
  { patienceMs, soFar }: { readonly patienceMs: number; readonly soFar: string },
  { onNote }: Pick<OperationContext, 'onNote'>,
): () => void {
  return machine.onReachChange(({ isAway, because, awayMs }) => {
    const waits = `tried again for at most ${formatDuration(patienceMs)}${soFar === '' ? '' : `; ${soFar}`}`;
    onNote(`${machine.name}: ${isAway ? `not reached (${because}); ${waits}` : `reached after ${formatDuration(awayMs)}`}`);
  });
}
