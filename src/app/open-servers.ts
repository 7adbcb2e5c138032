/** The servers of a run file → servers that are kept ready, each admitted only when it is what the run says. */
import { basename, join } from 'node:path';
import { AerieError } from '../base/errors.ts';
import type { Facts, Happening } from '../base/events.ts';
import { sha256Hex } from '../base/ids.ts';
import type { ServerFacts } from '../engine/dialect.ts';
import { dialectOf } from '../engine/dialects.ts';
import { Fleet } from '../fleet/fleet.ts';
import type { Host } from '../host/host.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { DEFAULT_MODEL } from '../server/default-model.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { KeptServer } from '../server/kept-server.ts';
import { isEngineInstalled, launchEmbedded } from '../server/launch-embedded.ts';
import { type ModelFile, obtainModel } from '../server/model-file.ts';
import { type Difference, launchDifferences } from '../spec/identity.ts';
import { isKnown } from '../base/element-type.ts';
import { checkPolicy, describeRule, findPlannedKvCacheDtype, isBroken, type LaunchClass } from '../spec/policy.ts';
import type { RunSpec, ServerSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { refuseShortContext } from './refuse-short-context.ts';
import { amended, launchFacts } from './run-folder.ts';

export interface OpenServersOptions {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  /** What servers are otherwise than before is recorded and not refused. */
  readonly isAmending: boolean;
  readonly onReady: (endpoint: Endpoint) => void;
}

/** What the run file and the environment alone can say no to, before a folder is made or a model is fetched. */
export function refuseBeforeStart(run: RunSpec, env: Host['env']): void {
  refuseUnlaunched(run);
  refuseForbidden(run);
  for (const server of run.servers) secretHeaders(server, env);
  if (run.servers.some(({ attach }) => attach === undefined) && !isEngineInstalled()) throw engineMissing();
}

/** A launch of SGLang or vLLM can be planned and not yet started from here. */
function refuseUnlaunched(run: RunSpec): void {
  const place = run.servers.findIndex(({ engine, attach }) => engine !== 'embedded' && attach === undefined);
  const server = run.servers[place];
  if (server === undefined) return;
  throw new AerieError(
    'server.not-launched',
    `servers[${place}] is a launch of ${server.engine}, which this version does not start.`,
    {
      because: 'It launches the embedded engine, and uses SGLang, vLLM and others that are already there.',
      remedy:
        `Start it, and write attach: http://HOST:PORT there instead of flags:. Nothing was started.\n` +
        `What its flags would hold: aerie plan ${run.file}`,
    },
  );
}

function engineMissing(): AerieError {
  return new AerieError('engine.missing', 'The embedded engine needs the package node-llama-cpp, which is not installed.', {
    remedy:
      'npm install node-llama-cpp@3.21.1\nor attach to a server that is already there: attach: http://… in the run file. Nothing was started.',
  });
}

/** Gets the model where a server needs it; starts nothing yet. */
export async function openServers(options: OpenServersOptions): Promise<Fleet> {
  const { run, context } = options;
  const needsModel = run.servers.some(({ attach }) => attach === undefined);
  const model = needsModel
    ? await obtainModel(run.model, { env: context.host.env, signal: context.drain, emit: tellOnce(context.onNote) })
    : undefined;
  if (model !== undefined) context.onNote(`model: ${model.label}`);
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

/** A sentence a download, not a line a chunk. */
function tellOnce(onNote: (text: string) => void): (progress: { readonly text: string }) => void {
  let last = '';
  return ({ text }) => {
    if (text !== last) onNote(text);
    last = text;
  };
}

/** Before a launch: the flags alone may already break a rule. */
function refuseForbidden(run: RunSpec): void {
  for (const server of run.servers) {
    const planned = findPlannedKvCacheDtype(server);
    if (planned === '') continue;
    const broken = checkPolicy(run.policy, { kvCacheDtype: planned }).find(({ kept, known }) => known && !kept);
    if (broken === undefined) continue;
    throw new AerieError('policy.forbids', `${server.name} would break a rule of ${run.file}: ${broken.because}.`, {
      because: `${broken.rule.because} (decided by ${broken.rule.by})`,
      remedy: 'Leave out kv-type, or set it to f16. Nothing was started.',
    });
  }
}

/** Room for the longest answer and a prompt of a thousand tokens, where the run file names no context; a sequence of 2,048 tokens is the engine's own default. */
function contextFor(run: RunSpec): number {
  const longest = Math.max(...run.partitions.map(({ ask }) => ask.sampling.maxTokens));
  return Math.max(2048, Math.ceil((longest + 1024) / 256) * 256);
}

function openServer(server: ServerSpec, model: ModelFile | undefined, options: OpenServersOptions): KeptServer {
  const { run, context, emit, onReady } = options;
  const { host } = context;
  const shared = {
    name: server.name,
    dialect: dialectOf(server.engine),
    model: run.model,
    headers: secretHeaders(server, host.env),
    connections: run.inFlight,
    patienceMs: run.patienceMs,
    admit: (facts: ServerFacts, baseUrl: string) => admitLaunch(server, facts, baseUrl, options),
    host,
    emit,
    onReady,
  };
  if (server.attach !== undefined) return new KeptServer({ ...shared, attach: server.attach });
  if (model === undefined) throw new Error('a launched server without a model');
  const launch = {
    server: server.name,
    modelPath: model.path,
    model: run.model === 'default' ? DEFAULT_MODEL.name : basename(run.model),
    revision: model.revision,
    flags: { context: contextFor(run), ...server.flags },
    port: server.port,
    logFolder: join(run.folder, 'logs'),
  };
  return new KeptServer({ ...shared, launch: () => launchEmbedded(launch, host) });
}

/** What `aerie check` and `aerie export` need to know of the model long after the server is gone. A server that does not say takes nothing back. */
function tokenFacts(facts: ServerFacts, before: Facts): Facts {
  const told = {
    'tokens.vocabularySize': facts.vocabularySize,
    'tokens.stopIds': facts.stopIds.join(','),
    // Servers may have contexts of their own: a record is right within the longest.
    'tokens.contextTokens': Math.max(facts.contextTokens, Number(before['tokens.contextTokens'] ?? 0)),
  };
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== 0 && value !== ''));
}

function secretHeaders(server: ServerSpec, env: Host['env']): Record<string, string> {
  if (server.apiKeyName === undefined) return {};
  const value = env[server.apiKeyName];
  if (value === undefined || value === '') {
    throw new AerieError('secret.missing', `${server.apiKeyName}, the key of ${server.name}, is not set in the environment.`, {
      remedy: `export ${server.apiKeyName}=… and give the same command again. Nothing was started.`,
    });
  }
  return { authorization: `Bearer ${value}` };
}

/** What a server says of itself, 0 being what it does not say. */
function classOf({ kvCacheDtype, contextTokens, poolTokens, sequences }: ServerFacts): LaunchClass {
  const figures = {
    ...(contextTokens > 0 ? { contextTokens } : {}),
    ...(poolTokens > 0 ? { poolTokens } : {}),
    ...(sequences > 0 ? { runningRequests: sequences } : {}),
  };
  return { kvCacheDtype, figures };
}

/** After a launch: what the server really is, against policy and against what the run began with. */
function admitLaunch(server: ServerSpec, facts: ServerFacts, baseUrl: string, options: OpenServersOptions): number {
  const { run, ledger, emit, context } = options;
  for (const check of checkPolicy(run.policy, classOf(facts))) {
    const { rule, kept, because } = check;
    emit({ kind: 'policy.checked', subject: server.name, facts: { rule: describeRule(rule), kept, because } });
    if (!isBroken(check)) continue;
    throw new AerieError('policy.broken', `${server.name} breaks a rule of ${run.file}: ${because}.`, {
      because: `${rule.because} (decided by ${rule.by})`,
      remedy: 'Nothing was asked of it. Start the server as the rule wants it, then run the same command again.',
    });
  }
  refuseTextOnly(server, facts, run);
  refuseShortContext(run, server, facts);
  const { model, revision, weights, kvCacheDtype, templateHash } = facts;
  const now = { model, revision, weights, kvCacheDtype, templateHash };
  const before = launchFacts(ledger.identity());
  const differences = launchDifferences({ ...now, ...before }, now);
  if (differences.length > 0 && !options.isAmending) throw isUnlike(run, server, differences);
  if (differences.length > 0) emit(amended(run, differences));
  const kept = differences.length > 0 ? {} : before;
  const known = Object.entries(now).map(([key, value]) => [`launch.${key}`, isKnown(kept[key] ?? '') ? kept[key] : value]);
  ledger.setIdentity({ ...ledger.identity(), ...Object.fromEntries(known), ...tokenFacts(facts, ledger.identity()) });
  const id = ledger.recordLaunch({
    server: server.name,
    engine: server.engine,
    engineVersion: facts.engineVersion,
    kvCacheDtype,
    weights,
    policyHash: sha256Hex(JSON.stringify(run.policy)),
    detail: JSON.stringify({
      flags: server.flags,
      attach: server.attach ?? '',
      baseUrl,
      apiKeyName: server.apiKeyName ?? '',
      facts,
    }),
    startedAt: context.host.clock.now(),
  });
  emit({
    kind: 'launch.recorded',
    subject: server.name,
    facts: { launch: id, engineVersion: facts.engineVersion, kvCacheDtype, weights },
  });
  return id;
}

/** An answer goes on from its ids. */
function refuseTextOnly(server: ServerSpec, facts: ServerFacts, run: RunSpec): void {
  const continued = run.partitions.find(({ continuations }) => continuations > 0);
  const { exact, because } = dialectOf(server.engine).exactness(facts);
  if (continued === undefined || exact) return;
  throw new AerieError(
    'run-file.wrong',
    `${server.name} gives no token ids, and partition ${continued.name} has truncated: continue, which needs them.`,
    { because, remedy: `Write truncated: keep (or drop) in ${run.file}, or use a newer server. Nothing was asked of it.` },
  );
}

/** Between two servers of one run, or between this start of the run and an earlier one. */
function isUnlike(run: RunSpec, server: ServerSpec, differences: readonly Difference[]): AerieError {
  return new AerieError('run-file.differs', `${server.name} is not what has answered for run ${run.name} so far.`, {
    because: 'All records of a run are made in one way, so that a trainer can rely on them.',
    evidence: differences.map(({ what, before, now }) => `${what}: was ${before}, is now ${now}`),
    remedy:
      'Start that server as the others are, leave it out of servers:, or give the new way its own name under run:. ' +
      'Nothing was asked of it; what is committed is safe.',
  });
}
