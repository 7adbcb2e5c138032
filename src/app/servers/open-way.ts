/** A way to a port, for whoever asks once: waited for until it is there. Throws `machine.refused` where there will be none. */
import type { Machine, Reach } from '../../machine/machine.ts';
import { untilOpen } from '../../machine/until-open.ts';
import type { OperationContext } from '../context.ts';

/** Longer than ssh takes to connect over the slowest usable line; where it does not come, questions say `refused`. */
const WAY_WITHIN_MS = 15_000;

export async function openWay(machine: Machine, port: number, { host, abort }: OperationContext): Promise<Reach> {
  const reach = await machine.reach(port);
  try {
    await untilOpen(reach, host.clock, host.clock.elapsed() + WAY_WITHIN_MS, abort);
    return reach;
  } catch (thrown) {
    await reach.close();
    throw thrown;
  }
}
