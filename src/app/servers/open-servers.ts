/** The servers of a run file → servers that are kept ready, each admitted only when it is what the run says. */
import type { Happening } from '../../base/events.ts';
import type { FoundTemplate } from '../../base/prompt-template.ts';
import type { ServerFacts } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import { Fleet } from '../../fleet/fleet.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Endpoint } from '../../server/endpoint.ts';
import { KeptServer, type KeptServerOptions } from '../../server/kept-server.ts';
import { launchEmbedded } from '../../server/launch-embedded.ts';
import type { ModelFile } from '../../server/model-file.ts';
import { MOST_IN_FLIGHT, type RunSpec, type ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { admitLaunch } from './admit-launch.ts';
import { embeddedLaunch, obtainEmbeddedModel } from './embedded-server.ts';
import { obtainTemplate } from './obtain-template.ts';
import { secretHeaders } from './secrets.ts';

export interface OpenServersOptions {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  /** What servers are otherwise than before is recorded and not refused. */
  readonly isAmending: boolean;
  readonly onReady: (endpoint: Endpoint) => void;
}

/** Gets the model where a server needs it; starts nothing yet. */
export async function openServers(options: OpenServersOptions): Promise<Fleet> {
  const { run, context } = options;
  const model = await obtainEmbeddedModel(run, context);
  const servers = run.servers.map((server) => openServer(server, model, options));
  for (const server of servers) sayWhenLeftOut(server, servers, options.emit);
  return new Fleet(servers, context.host.clock);
}

/** A run goes on with the servers that are left, but not silently. The last one's failure is the run's own error. */
function sayWhenLeftOut(server: KeptServer, all: readonly KeptServer[], emit: OpenServersOptions['emit']): void {
  let isSaid = false;
  server.onChange(() => {
    const { failure } = server;
    if (isSaid || failure === undefined || all.every((one) => one.failure !== undefined)) return;
    isSaid = true;
    emit({ kind: 'server.left-out', subject: server.name, facts: { code: failure.code, because: failure.message } });
  });
}

function openServer(server: ServerSpec, model: ModelFile | undefined, options: OpenServersOptions): KeptServer {
  const { run, ledger, context, emit, isAmending, onReady } = options;
  const { host } = context;
  const admitting = { run, ledger, clock: host.clock, emit, isAmending };
  const shared = {
    name: server.name,
    dialect: dialectOf(server.engine),
    model: run.model,
    headers: secretHeaders(server, host.env),
    connections: run.isInFlightAuto ? MOST_IN_FLIGHT : run.inFlight, // the gate opens them one by one as they are needed
    patienceMs: run.patienceMs,
    admit: (facts: ServerFacts, baseUrl: string, template: FoundTemplate) =>
      admitLaunch(server, facts, baseUrl, { ...admitting, template }),
    findTemplate: (facts: ServerFacts, signal: AbortSignal) =>
      obtainTemplate({ model: run.model, runFolder: run.folder, access: { env: host.env, signal } }, facts),
    host,
    emit,
    onReady,
  } satisfies KeptServerOptions;
  if (server.attach !== undefined) return new KeptServer({ ...shared, attach: server.attach });
  if (model === undefined) throw new Error('a launched server without a model');
  const launch = embeddedLaunch(run, server, model);
  return new KeptServer({ ...shared, launch: () => launchEmbedded(launch, host) });
}
