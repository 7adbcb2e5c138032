/**
 * A run file that has passed every check → the run as the rest of Aerie sees it: defaults filled in, paths absolute,
 * frozen all the way down. Pure.
 */
import { dirname, resolve } from 'node:path';
import { parseTokens } from '../base/units.ts';
import { parseDuration } from './duration.ts';
import { parseAttach } from './field-kinds.ts';
import { runFolderOf } from './find-run.ts';
import { isHubPath } from './hub-path.ts';
import {
  type AskSettings,
  COLUMN_NAMES,
  type Columns,
  type EnvValue,
  type FlagValue,
  type PartitionSpec,
  type PolicyLimits,
  type PolicyRule,
  type RunSpec,
  type ServerSpec,
} from './run.ts';
import type { RunFile } from './run-file.ts';
import type { WrittenOverride, WrittenSampling } from './sampling-keys.ts';

/** What saturates eight sequences of the embedded engine, and what keeps one GPU's batch full without a long queue. */
const IN_FLIGHT = { embedded: 8, other: 64 };
/** Nine times max-tokens in all: 18,432 at its default. Answers that are longer still are mostly loops, which never end. */
const CONTINUATIONS = 8;

export type WrittenRule = RunFile['policy'][number];

export function resolveRule({ forbid, require: required, min, max, because, by }: WrittenRule): PolicyRule {
  return {
    ...(forbid === undefined ? {} : { forbid: given({ kvCache: forbid['kv-cache'], weights: forbid.weights }) }),
    ...(required === undefined ? {} : { require: given({ kvCache: required['kv-cache'], weights: required.weights }) }),
    ...(min === undefined ? {} : { min: resolveLimits(min) }),
    ...(max === undefined ? {} : { max: resolveLimits(max) }),
    because,
    by,
  };
}

function resolveLimits(limits: NonNullable<WrittenRule['min']>): PolicyLimits {
  return given({
    kvCacheBits: limits['kv-cache-bits'],
    weightBits: limits['weight-bits'],
    contextTokens: limits.context,
    poolTokens: limits.pool,
    runningRequests: limits['running-requests'],
    memoryFraction: limits['memory-fraction'],
    freeGiB: limits['free-gib'],
  });
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the keys that nobody wrote. */
function given<T extends object>(parts: T): Given<T> {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as Given<T>;
}

export function resolveRun(file: RunFile, at: { readonly file: string; readonly text: string }): RunSpec {
  const path = resolve(at.file);
  const ask = resolveAsk(file.sampling);
  const servers = file.servers.map((server, place) => resolveServer(server, place, dirname(path)));
  return freeze({
    name: file.run,
    model: resolveModel(file, dirname(path)),
    servers,
    policy: file.policy.map(resolveRule),
    ...ask,
    partitions: file.partitions.map((partition) => resolvePartition(partition, dirname(path), file.sampling)),
    attemptTimeoutMs: parseDuration(file['attempt-timeout'] ?? '') ?? 0,
    patienceMs: parseDuration(file.patience) ?? 0,
    isInFlightGiven: typeof file['in-flight'] === 'number',
    isInFlightAuto: file['in-flight'] === 'auto',
    inFlight: typeof file['in-flight'] === 'number' ? file['in-flight'] : defaultInFlight(servers),
    pricePerHour: file['price-per-hour'] ?? 0,
    file: path,
    folder: runFolderOf(path, file.run),
    serverFolder: runFolderOf(path, file.run),
    text: at.text,
  });
}

function defaultInFlight(servers: readonly ServerSpec[]): number {
  return servers.every(({ engine }) => engine === 'embedded') ? IN_FLIGHT.embedded : IN_FLIGHT.other;
}

/** A path only where this machine loads the model; a server that is already there has its own name for it. */
function resolveModel(file: RunFile, folder: string): string {
  const isPath = /\.gguf$/i.test(file.model) && !/^[a-z][a-z0-9+.-]+:/i.test(file.model); // `hf:owner/name/x.gguf` is a hub name
  return isPath && file.servers.some(({ engine }) => engine === 'embedded') ? resolve(folder, file.model) : file.model;
}

function resolveServer(server: RunFile['servers'][number], place: number, folder: string): ServerSpec {
  const key = server['api-key'];
  return {
    name: server.name ?? `${server.engine}-${place}`,
    engine: server.engine,
    ...resolvePlace(server),
    ...(key === undefined ? {} : { apiKeyName: key.slice(1) }),
    flags: writtenFlags(server.flags ?? {}),
    port: server.port ?? 0,
    setup: server.setup ?? [],
    env: resolveEnv(server.env ?? {}),
    command: server.command?.trim() ?? '',
    workdir: server.workdir === undefined ? '' : resolve(folder, server.workdir),
    log: server.log === undefined ? '' : resolve(folder, server.log),
    gpu: server.gpu ?? '',
    engineVersion: server['engine-version'] ?? '',
  };
}

type WrittenServer = RunFile['servers'][number];

/** `ssh://BOX:PORT` says both where it is and what is attached to. */
function resolvePlace({ machine, attach }: WrittenServer): Pick<ServerSpec, 'machine' | 'attach'> {
  const written = attach === undefined ? undefined : parseAttach(attach);
  const on: { readonly ssh: string; readonly outer?: string | undefined } | undefined =
    typeof machine === 'string' ? { ssh: machine } : machine;
  const where = on === undefined ? {} : { machine: { ssh: on.ssh, outer: on.outer ?? '' } };
  if (written === undefined || attach === undefined) return where;
  if (written.kind !== 'ssh') return { ...where, attach: written };
  return {
    machine: { ssh: written.machine, outer: on?.outer ?? '' },
    attach: { kind: 'port', written: attach, port: written.port },
  };
}

function resolveEnv(written: NonNullable<RunFile['servers'][number]['env']>): Record<string, EnvValue> {
  const resolved = Object.entries(written).map(([name, value]): [string, EnvValue] => {
    const secret = typeof value === 'string' ? /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1] : undefined;
    return [name, secret === undefined ? { value: String(value) } : { secret }];
  });
  return Object.fromEntries(resolved);
}

function writtenFlags(flags: NonNullable<RunFile['servers'][number]['flags']>): Record<string, FlagValue> {
  const written: Record<string, FlagValue> = {};
  for (const [key, value] of Object.entries(flags)) if (value !== undefined) written[key] = value;
  return written;
}

function resolveAsk(sampling: WrittenSampling): AskSettings {
  return {
    sampling: {
      temperature: sampling.temperature,
      topP: sampling['top-p'],
      topK: sampling['top-k'],
      maxTokens: sampling['max-tokens'],
      seed: sampling.seed,
      stop: sampling.stop ?? [],
    },
    temperatureMixture: sampling['temperature-mixture'] ?? [],
    templateKwargs: {
      ...sampling['chat-template-kwargs'],
      ...(sampling.thinking === undefined ? {} : { enable_thinking: sampling.thinking }),
    },
    extraBody: sampling['extra-body'],
  };
}

/** A partition that names one temperature means that one: the run's mixture does not apply to it. */
function layOver(run: WrittenSampling, own: WrittenOverride): WrittenSampling {
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  const { 'temperature-mixture': mixture, ...rest } = run;
  const isKept = mixture !== undefined && own.temperature === undefined;
  return { ...rest, ...(isKept ? { 'temperature-mixture': mixture } : {}), ...given };
}

function resolvePartition(partition: RunFile['partitions'][number], folder: string, sampling: WrittenSampling): PartitionSpec {
  return {
    name: partition.name,
    from: [partition.from].flat().map((written) => resolveSource(written, folder)),
    columns: resolveColumns(partition.columns),
    budget: countOf(partition.budget),
    limit: countOf(partition.limit),
    turns: partition.turns,
    truncated: partition.truncated,
    continuations: partition.truncated === 'continue' ? (partition.continuations ?? CONTINUATIONS) : 0,
    ask: resolveAsk(layOver(sampling, partition.sampling ?? {})),
  };
}

function resolveSource(written: string, folder: string): string {
  return isHubPath(written) ? written : resolve(folder, written);
}

function resolveColumns(written: RunFile['partitions'][number]['columns'] = {}): Columns {
  return Object.fromEntries(COLUMN_NAMES.flatMap((name) => (written[name] === undefined ? [] : [[name, written[name]]])));
}

/** The schema has let only readable counts through; 0 = not given. */
function countOf(written: number | string | undefined): number {
  return typeof written === 'string' ? (parseTokens(written) ?? 0) : (written ?? 0);
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const below of Object.values(value)) freeze(below);
  }
  return value;
}
