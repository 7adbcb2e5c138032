/** A way to a port, for whoever asks once: waited for until it is there. Throws `machine.refused` where there will be none. */
import type { Machine, Reach } from '../../machine/machine.ts';
import { untilOpen } from '../../machine/until-open.ts';
import { type LaunchAddress, reachLaunch } from '../../server/launch/launch-address.ts';
import type { LaunchRecord } from '../../server/launch/launch-book.ts';
import type { OperationContext } from '../context.ts';

/** Longer than ssh takes to connect over the slowest usable line; where it does not come, questions say `refused`. */
const WAY_WITHIN_MS = 15_000;

export async function openWay(machine: Machine, port: number, context: OperationContext): Promise<Reach> {
  return await untilThere(await machine.reach(port), context);
}

/** To the engine of a launch; one that has no address is not waited for. */
export async function openLaunchWay(
  machine: Machine,
  launch: LaunchRecord,
  at: LaunchAddress,
  context: OperationContext,
): Promise<Reach> {
  const reach = await reachLaunch(machine, launch, at);
  return at.kind === 'listens' ? await untilThere(reach, context) : reach;
}

async function untilThere(reach: Reach, { host, abort }: OperationContext): Promise<Reach> {
  try {
    await untilOpen(reach, host.clock, host.clock.elapsed() + WAY_WITHIN_MS, abort);
    return reach;
  } catch (thrown) {
    await reach.close();
    throw thrown;
  }
}
