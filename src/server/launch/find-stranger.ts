/**
 * Whose is the port of a launch that loads? Engines open theirs last, minutes after preflight found it free, and whoever takes it
 * meanwhile answers health for them. The kernel tells who listens, where it may be seen.
 *
 * Promises: a listener that belongs to the launch is never taken for a stranger, and nobody is where it cannot be told: an owner who may
 * not be seen, a launch in a container (its port is held by docker), a log that tells nothing, or that says that the server is up.
 */
import { isOutOfReach } from '../../base/errors.ts';
import type { Account } from '../../diagnosis/account.ts';
import type { Machine, PortOwner } from '../../machine/machine.ts';
import type { LaunchRecord } from './launch-book.ts';

export interface PortQuestion {
  readonly machine: Pick<Machine, 'portOwner' | 'look'>;
  readonly launch: LaunchRecord;
  /** Of its log so far. */
  readonly account: Pick<Account, 'recognised' | 'ready'>;
}

export type Stranger = PortOwner & { readonly pid: number };

export async function findStranger({ machine, launch, account }: PortQuestion): Promise<Stranger | undefined> {
  const { identity, contained, port } = launch;
  if (identity === undefined || contained !== undefined || account.recognised === 0 || account.ready !== undefined)
    return undefined;
  try {
    const owner = await machine.portOwner(port);
    if (owner?.pid === undefined) return undefined;
    const { family } = await machine.look(identity, launch);
    const isMember = family.length === 0 || family.some(({ pid }) => pid === owner.pid);
    return isMember ? undefined : { ...owner, pid: owner.pid };
  } catch (thrown) {
    if (isOutOfReach(thrown)) return undefined; // whoever watches the launch tells it
    throw thrown;
  }
}

export function describeStranger({ port, pid, command }: Stranger, machine: Pick<Machine, 'isHere' | 'name'>): string {
  const on = machine.isHere ? '' : ` on ${machine.name}`;
  return (
    `port ${port}${on} is answered by pid ${pid} (${command.slice(0, 120)}), which is not of this launch, and the launch still loads: ` +
    `end that one (kill ${pid}), or stop this launch and write another port in the run file`
  );
}
