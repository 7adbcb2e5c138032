/** The servers of a run file → servers that are kept ready, each admitted only when it is what the run says. */
import type { Happening } from '../../base/events.ts';
import type { FoundTemplate } from '../../base/prompt-template.ts';
import { openRedactor } from '../../base/redact.ts';
import type { ServerFacts } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import { Fleet } from '../../fleet/fleet.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Endpoint } from '../../server/endpoint.ts';
import { KeptServer, type KeptServerOptions } from '../../server/kept-server.ts';
import type { EngineLauncher } from '../../server/launch/engine-launcher.ts';
import { launchEmbedded } from '../../server/launch-embedded.ts';
import type { ModelFile } from '../../server/model-file.ts';
import { type Attachment, MOST_IN_FLIGHT, type PolicyRule, type RunSpec, type ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { admitLaunch } from './admit-launch.ts';
import { AttachedServer } from './attached-server.ts';
import { embeddedLaunch, obtainEmbeddedModel } from './embedded-server.ts';
import type { LaunchBasis } from './launch-basis.ts';
import { type LaunchedServerOptions, openLauncher, rememberReady, verifyReady } from './launched-server.ts';
import { machineOf } from './machine-of.ts';
import { obtainTemplate } from './obtain-template.ts';
import { launchEnvironment, redactError, secretHeaders } from './secrets.ts';

export interface OpenServersOptions {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  /** What servers are otherwise than before is recorded and not refused. */
  readonly isAmending: boolean;
  /** Rules in force now. */
  readonly policy: () => readonly PolicyRule[];
  /** What is known of each launch of SGLang or vLLM, by server. */
  readonly bases: ReadonlyMap<string, LaunchBasis>;
  /** The worker ends. */
  readonly stopping: AbortSignal;
  readonly killHolder?: number;
  readonly onReady: (endpoint: Endpoint) => void;
}

export interface OpenedServers {
  readonly fleet: Fleet;
  /** Those that Aerie launches, by name. */
  readonly launchers: ReadonlyMap<string, EngineLauncher>;
}

/** Gets the model where a server needs it; starts nothing yet. */
export async function openServers(options: OpenServersOptions): Promise<OpenedServers> {
  const { run, context } = options;
  const model = await obtainEmbeddedModel(run, context);
  const launchers = new Map<string, EngineLauncher>();
  const late: { fleet?: Fleet } = {};
  const opening: Opening = {
    ...options,
    model,
    launchers,
    asked: (name) => late.fleet?.askedOf(name) ?? { inFlight: 0, answered: 0 },
  };
  const servers = run.servers.map((server) => openServer(server, opening));
  for (const server of servers) sayWhenLeftOut(server, servers, options.emit);
  sayWhenAway(options);
  late.fleet = new Fleet(servers, context.host.clock);
  return { fleet: late.fleet, launchers };
}

interface Opening extends OpenServersOptions {
  readonly model: ModelFile | undefined;
  readonly launchers: Map<string, EngineLauncher>;
  readonly asked: (server: string) => { readonly inFlight: number; readonly answered: number };
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

/** What runs on a machine that is out of reach goes on, and so does the run. */
function sayWhenAway({ run, context, emit, stopping }: OpenServersOptions): void {
  const machines = new Set(
    run.servers.filter(({ machine }) => machine !== undefined).map((server) => machineOf(server, context, run.patienceMs)),
  );
  for (const machine of machines) {
    const unhear = machine.onReachChange(({ isAway, because, awayMs }) => {
      if (isAway) emit({ kind: 'machine.away', subject: machine.name, facts: { because, patienceMs: run.patienceMs } });
      else emit({ kind: 'machine.back', subject: machine.name, facts: { awayMs } });
    });
    stopping.addEventListener('abort', unhear, { once: true });
  }
}

function openServer(server: ServerSpec, opening: Opening): KeptServer {
  const { run, ledger, context, emit, isAmending, onReady, policy, model } = opening;
  const { host } = context;
  const admitting = { run, ledger, clock: host.clock, emit, isAmending, policy };
  const shared = {
    name: server.name,
    dialect: dialectOf(server.engine),
    model: run.model,
    headers: secretHeaders(server, host.env),
    connections: run.isInFlightAuto ? MOST_IN_FLIGHT : run.inFlight, // the gate opens them one by one as they are needed
    patienceMs: run.patienceMs,
    admit: (facts: ServerFacts, baseUrl: string, template: FoundTemplate) => ({
      launch: admitLaunch(server, facts, baseUrl, { ...admitting, template }),
      facts,
    }),
    findTemplate: (facts: ServerFacts, signal: AbortSignal) =>
      obtainTemplate(
        {
          ...{ model: run.model, runFile: run.file, runFolder: run.folder, access: { env: host.env, signal } },
          machine: machineOf(server, context, run.patienceMs),
        },
        facts,
      ),
    host,
    emit,
    onReady,
  } satisfies KeptServerOptions;
  if (server.attach !== undefined) return openAttached(server, server.attach, opening, shared);
  if (server.engine !== 'embedded') return openLaunched(server, opening, shared);
  if (model === undefined) throw new Error('a launched server without a model');
  const launch = embeddedLaunch(run, server, model);
  return new KeptServer({ ...shared, launch: () => launchEmbedded(launch, host) });
}

function openLaunched(server: ServerSpec, opening: Opening, shared: Omit<KeptServerOptions, 'launch' | 'attach'>): KeptServer {
  const { run, ledger, context, emit, isAmending, policy, launchers, bases, asked, stopping } = opening;
  const basis = bases.get(server.name);
  if (basis === undefined) throw new Error(`nothing was planned for ${server.name}`);
  const options: LaunchedServerOptions = {
    ...{ run, server, basis, machine: machineOf(server, context, run.patienceMs), context, emit, policy, signal: stopping },
    asked: () => asked(server.name),
    ...(opening.killHolder === undefined ? {} : { killHolder: opening.killHolder }),
  };
  const launcher = openLauncher(options);
  const redact = openRedactor(launchEnvironment(server, context.host.env).secrets);
  launchers.set(server.name, launcher);
  return new KeptServer({
    ...shared,
    afterDeath: 'launch',
    launch: () =>
      launcher.launch().catch((thrown: unknown) => {
        throw redactError(thrown, redact);
      }),
    admit: async (told, baseUrl, template) => {
      const { facts, known, log } = await verifyReady(options, launcher, told);
      const launch = admitLaunch(server, facts, baseUrl, {
        run,
        ledger,
        clock: context.host.clock,
        emit,
        isAmending,
        policy,
        known,
        template,
      });
      if (context.lab === undefined) await rememberReady({ run, basis, log, host: context.host, flags: known.flags });
      return { launch, facts };
    },
  });
}

/** A server that is already there. Of engines that have a log, it is found out what it really is. */
function openAttached(server: ServerSpec, attach: Attachment, opening: Opening, shared: KeptServerOptions): KeptServer {
  const { run, ledger, context, emit, isAmending, policy, stopping, asked } = opening;
  const engine = server.engine === 'vllm' ? 'vllm' : 'sglang';
  const late: { kept?: KeptServer } = {};
  const attached = new AttachedServer({
    ...{ run, server, attach, engine, context, emit, policy, signal: stopping },
    ...{ asked: () => asked(server.name), sender: () => late.kept },
  });
  const way = { written: attach.written, isDirect: attach.kind !== 'url' };
  if (server.engine !== engine) return new KeptServer({ ...shared, attach: { ...way, open: () => attached.open() } });
  late.kept = new KeptServer({
    ...shared,
    attach: {
      ...way,
      open: () => attached.openWatched(),
      whoAnswers: () => attached.whoAnswers(),
      heldBack: () => attached.heldBack,
    },
    admit: async (told, baseUrl, template) => {
      const { facts, known } = await attached.verify(told);
      const admitting = { run, ledger, clock: context.host.clock, emit, isAmending, policy, known, template };
      return { launch: admitLaunch(server, facts, baseUrl, admitting), facts };
    },
  });
  return late.kept;
}
