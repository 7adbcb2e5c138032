/** A log on a machine elsewhere (this one, said not to be here), and a worker's reader that mirrors it into a run folder. */
import { nodeHost } from '../../src/host/node-host.ts';
import { localMachine } from '../../src/machine/local/local-machine.ts';
import type { Machine } from '../../src/machine/machine.ts';
import { LogFollower } from '../../src/server/launch/follow-log.ts';
import { LogMirror } from '../../src/server/launch/mirror-log.ts';

export const elsewhere: Machine = { ...localMachine(nodeHost()), isHere: false, name: 'gpu-box' };

export interface MirroredLog {
  /** The log there. */
  readonly logPath: string;
  /** The run folder here. */
  readonly folder: string;
  readonly launch: number;
  readonly machine?: Machine;
  readonly onTrouble?: (sentence: string) => void;
}

/** Reads from the beginning of the log, as at each start of a worker. */
export function followMirrored({ machine = elsewhere, onTrouble = () => undefined, ...log }: MirroredLog): LogFollower {
  const mirror = new LogMirror({ ...log, machine, server: 's', onTrouble });
  return new LogFollower(machine, log.logPath, 'sglang', mirror);
}
