/** Whether a port of a machine behind ssh can be reached from here: through the way that a run would take. Nobody has to listen there. */
import { AerieError } from '../../base/errors.ts';
import type { Machine } from '../../machine/machine.ts';
import type { OperationContext } from '../context.ts';
import { openWay } from '../servers/open-way.ts';
import { type DoctorCheck, fails, ok, warning } from './finding.ts';

export async function checkWay(server: string, port: number, machine: Machine, context: OperationContext): Promise<DoctorCheck> {
  const name = `way to ${server}`;
  try {
    const reach = await openWay(machine, port, context);
    const isOpen = reach.isOpen();
    await reach.close();
    if (isOpen) return ok(name, `port ${port} of ${machine.name} is reached through ssh`, { port });
    return warning(name, `no way to port ${port} of ${machine.name} came about in time`, 'Try it again when the line is better.');
  } catch (thrown) {
    if (!(thrown instanceof AerieError)) throw thrown;
    const { because = '', remedy } = thrown.detail;
    return fails(name, `${thrown.message.replace(/\.$/, '')} (${thrown.code}): ${because}`, remedy, { port });
  }
}
