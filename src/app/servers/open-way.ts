/** A way to a port, for whoever asks once: waited for until it is there. */
import type { Machine, Reach } from '../../machine/machine.ts';
import { untilOpen } from '../../machine/until-open.ts';
import type { OperationContext } from '../context.ts';

/** Longer than ssh takes to connect over the slowest usable line; where it does not come, questions say `refused`. */
const WAY_WITHIN_MS = 15_000;

export async function openWay(machine: Machine, port: number, { host, abort }: OperationContext): Promise<Reach> {
  const reach = await machine.reach(port);
  await untilOpen(reach, host.clock, host.clock.elapsed() + WAY_WITHIN_MS, abort);
  return reach;
}
