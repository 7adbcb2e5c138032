/** Ends every launch of a rehearsal by its recorded identity, whatever ended the rehearsal. */
import type { RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { openIdleLauncher } from '../servers/idle-launcher.ts';

/** One that cannot be stopped keeps no other from it; then the first reason is thrown. */
export async function stopRehearsed(run: RunSpec, context: OperationContext): Promise<void> {
  const stopped = await Promise.allSettled(run.servers.map((server) => stopServer(run, server, context)));
  const failed = stopped.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function stopServer(run: RunSpec, server: ServerSpec, context: OperationContext): Promise<void> {
  // Ctrl-C has been heard already: what is left to do is to clean up.
  const { signal } = new AbortController();
  if (context.lab === undefined) return;
  const fresh = { ...context, drain: signal, abort: signal };
  const launcher = await openIdleLauncher({ run, server, context: fresh, emit: () => undefined, policy: () => run.policy });
  await launcher.stop();
}
