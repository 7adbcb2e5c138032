/** Whether a port of the machine can be reached from here, asked before a load of minutes. */
import { untilOpen } from '../../machine/until-open.ts';
import type { LauncherOptions } from './launcher-options.ts';

/** A slow login; a way that takes longer may still come while the model loads. */
const WAY_WITHIN_MS = 15_000;

/** Throws `machine.refused` where sshd forwards no connection to that port. Nobody has to listen there yet. */
export async function refuseClosedWay(
  { machine, host, signal }: Pick<LauncherOptions, 'machine' | 'host' | 'signal'>,
  port: number,
): Promise<void> {
  if (machine.isHere) return;
  const reach = await machine.reach(port);
  try {
    await untilOpen(reach, host.clock, host.clock.elapsed() + WAY_WITHIN_MS, signal);
  } finally {
    await reach.close();
  }
}
