/** A port for a launch whose run file names none. */
import { AerieError } from '../../base/errors.ts';
import type { Random } from '../../host/host.ts';
import type { Machine } from '../../machine/machine.ts';

/** Below the ports that systems give to outgoing connections (32768 on Linux), so that none of these takes it while the model loads. */
const PORTS = { first: 30_000, count: 2_768 } as const;
const PORTS_TRIED = 50;

/** Free at this moment; the engine binds it minutes later. Drawn, because two launches may look at the same time. */
export async function findFreePort(machine: Machine, random: Random): Promise<number> {
  for (let tried = 0; tried < PORTS_TRIED; tried++) {
    const port = PORTS.first + Math.floor(random() * PORTS.count);
    if ((await machine.portOwner(port)) === undefined) return port;
  }
  throw new AerieError('server.not-launched', `No free port was found: ${PORTS_TRIED} of 30000 to 32767 are taken.`, {
    remedy: 'Write a free one under port: in the run file. Nothing was started.',
  });
}
