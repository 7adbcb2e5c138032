/** The address of a server on its own machine, for people: the way from here ends with the command that has opened it. Pure. */
import type { Machine } from '../../machine/machine.ts';

/** '' on this machine. */
export function addressThere({ isHere, name }: Pick<Machine, 'isHere' | 'name'>, port: number): string {
  return isHere ? '' : `port ${port} of ${name}`;
}
