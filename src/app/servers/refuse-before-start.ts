/** What the run file and the environment alone can say no to, before a folder is made or a model is fetched. */
import { AerieError } from '../../base/errors.ts';
import type { Host } from '../../host/host.ts';
import { isEngineInstalled } from '../../server/launch-embedded.ts';
import { checkPolicy, findPlannedKvCacheDtype } from '../../spec/policy.ts';
import type { RunSpec } from '../../spec/run.ts';
import { launchEnvironment, secretHeaders } from './secrets.ts';

export function refuseBeforeStart(run: RunSpec, env: Host['env']): void {
  refuseForbidden(run);
  for (const server of run.servers) {
    secretHeaders(server, env);
    launchEnvironment(server, env);
  }
  const needsEngine = run.servers.some(({ engine, attach }) => engine === 'embedded' && attach === undefined);
  if (needsEngine && !isEngineInstalled()) throw engineMissing();
}

function engineMissing(): AerieError {
  return new AerieError('engine.missing', 'The embedded engine needs the package node-llama-cpp, which is not installed.', {
    remedy:
      'npm install node-llama-cpp@3.21.1\nor attach to a server that is already there: attach: http://… in the run file. Nothing was started.',
  });
}

/** Of the embedded engine the flags alone tell; launches of others are judged with their model and GPU (`launch-plan.ts`). */
function refuseForbidden(run: RunSpec): void {
  for (const server of run.servers) {
    const planned = server.engine === 'embedded' ? findPlannedKvCacheDtype(server) : '';
    if (planned === '') continue;
    const broken = checkPolicy(run.policy, { kvCacheDtype: planned }).find(({ kept, known }) => known && !kept);
    if (broken === undefined) continue;
    throw new AerieError('policy.forbids', `${server.name} would break a rule of run ${run.name}: ${broken.because}.`, {
      because: `${broken.rule.because} (decided by ${broken.rule.by})`,
      remedy: 'Leave out kv-type, or set it to f16. Nothing was started.',
    });
  }
}
