/** Before a folder is made or a process is started: what each launch of the run file is, and whether a rule forbids it. */
import type { RunSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { type LaunchBasis, obtainBasis } from './launch-basis.ts';
import { machineOf } from './machine-of.ts';
import { refuseForbiddenLaunch } from './refuse-forbidden-launch.ts';
import { sayWhenNotReached } from './say-when-not-reached.ts';

/** By server; only launches of SGLang and vLLM have a basis. Throws `policy.forbids`. */
export async function planLaunches(run: RunSpec, context: OperationContext): Promise<ReadonlyMap<string, LaunchBasis>> {
  const bases = new Map<string, LaunchBasis>();
  for (const server of run.servers) {
    if (server.attach !== undefined || (server.engine !== 'sglang' && server.engine !== 'vllm')) continue;
    const machine = machineOf(server, context, run.patienceMs);
    const unhear = sayWhenNotReached(machine, { patienceMs: run.patienceMs, soFar: 'nothing was started' }, context);
    const basis = await obtainBasis(run, server, machine, context).finally(unhear);
    for (const unknown of basis.unknown) context.onNote(`${server.name}: not known: ${unknown}`);
    refuseForbiddenLaunch({ run, server, basis, policy: run.policy }, server.flags);
    bases.set(server.name, basis);
  }
  return bases;
}
