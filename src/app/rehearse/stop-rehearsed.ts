/** Ends every launch of a rehearsal by its recorded identity, whatever ended the rehearsal. */
import type { RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { obtainBasis } from '../servers/launch-basis.ts';
import { openLauncher } from '../servers/launched-server.ts';

/** One that cannot be stopped keeps no other from it; then the first reason is thrown. */
export async function stopRehearsed(run: RunSpec, context: OperationContext): Promise<void> {
  const stopped = await Promise.allSettled(run.servers.map((server) => stopServer(run, server, context)));
  const failed = stopped.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function stopServer(run: RunSpec, server: ServerSpec, context: OperationContext): Promise<void> {
  // Ctrl-C has been heard already: what is left to do is to clean up.
  const { signal } = new AbortController();
  const machine = context.lab?.machineOf(server);
  if (machine === undefined) return;
  const basis = await obtainBasis(run, server, machine, { ...context, drain: signal, onNote: () => undefined });
  const launcher = openLauncher({
    ...{ run, server, machine, basis, context, signal },
    emit: () => undefined,
    policy: () => run.policy,
    asked: () => ({ inFlight: 0, answered: 0 }),
  });
  await launcher.stop();
}
