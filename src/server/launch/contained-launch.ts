/** A launch whose command is a client, as its record in the book says: the machine that sees inside. `launch-address.ts` knows where it is asked. */
import { AerieError } from '../../base/errors.ts';
import { type ContainedMachine, containedMachine } from '../../machine/contained/contained-machine.ts';
import { LABEL } from '../../machine/contained/containers.ts';
import type { Machine } from '../../machine/machine.ts';
import type { LaunchRecord } from './launch-book.ts';

/** undefined: the launch is a process of the machine itself. Secrets of its environment are not needed, and not given. */
export function containedOf(
  machine: Machine,
  { contained, env }: Pick<LaunchRecord, 'contained' | 'env'>,
): ContainedMachine | undefined {
  if (contained === undefined) return undefined;
  const told = Object.entries(env).filter(([, value]) => !value.startsWith('$'));
  return containedMachine(machine, contained, Object.fromEntries(told));
}

/** The machine as this launch needs it. */
export function machineOfLaunch(machine: Machine, record: Pick<LaunchRecord, 'contained' | 'env'>): Machine {
  return containedOf(machine, record) ?? machine;
}

/** A client that is gone, and nobody to ask whether what it started is: nothing is judged, and nothing is started beside it. */
export function refuseUnasked(name: string, { contained, marker }: LaunchRecord): void {
  if (contained === undefined) return;
  const isContainer = contained.kind === 'container';
  const see = isContainer ? `${contained.control} ps -a --filter label=${LABEL}=${marker}` : `squeue --name ${marker}`;
  throw new AerieError(
    'server.not-launched',
    `Whether the last launch of ${name} still runs cannot be asked: ${isContainer ? 'docker' : 'Slurm'} does not answer.`,
    {
      remedy: `See what it says:  ${see}
Then give the same command again. Nothing was started or ended.`,
    },
  );
}
