/**
 * A server of SGLang or vLLM that Aerie launches: what the run file says of it, what the machine and the arithmetic know, and
 * the rules in force, put together as a `KeptServer` whose launches are an `EngineLauncher`'s.
 */
import type { Facts, Happening } from '../../base/events.ts';
import { openRedactor } from '../../base/redact.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import { plainFactsOf } from '../../diagnosis/measured-figures.ts';
import type { Dialect, ServerFacts } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import { type LaunchFlags, SGLANG_LINE, VLLM_LINE, wordsOf } from '../../engine/launching.ts';
import type { Host } from '../../host/host.ts';
import type { Machine } from '../../machine/machine.ts';
import { EngineLauncher } from '../../server/launch/engine-launcher.ts';
import { type LaunchRecord, openBook, withoutWriting } from '../../server/launch/launch-book.ts';
import type { LauncherOptions } from '../../server/launch/launcher-options.ts';
import { LOOPBACK } from '../../server/launch/loopback.ts';
import { LogMirror } from '../../server/launch/mirror-log.ts';
import { compareSeen, rememberSeen, seenOf } from '../../server/launch/seen-launches.ts';
import type { VerifiedLaunch } from '../../server/launch/verified-launch.ts';
import { verifyLaunch } from '../../server/launch/verify-launch.ts';
import { NOTHING_KEPT } from '../../server/recovery/kept-changes.ts';
import type { Flags } from '../../server/recovery/recovery.ts';
import type { PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import { checkRemedy } from '../check-remedy.ts';
import type { OperationContext } from '../context.ts';
import { rememberLaunch } from '../plan/remembered.ts';
import type { KnownLaunch } from './admit-launch.ts';
import { type LaunchBasis, planOf, recoveryBasisOf } from './launch-basis.ts';
import { launchPaths } from './launch-paths.ts';
import { outerMachineOf } from './machine-of.ts';
import { refuseForbiddenLaunch } from './refuse-forbidden-launch.ts';
import { launchEnvironment } from './secrets.ts';

export interface LaunchedServerOptions {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly basis: LaunchBasis;
  readonly machine: Machine;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  readonly policy: () => readonly PolicyRule[];
  readonly asked: () => { readonly inFlight: number; readonly answered: number };
  readonly signal: AbortSignal;
  readonly killHolder?: number;
  /** It starts nothing, and needs no secret: it ends a launch, or changes what the next one will be. */
  readonly isIdle?: boolean;
  /** The disk takes nothing more: the book is read and not written. */
  readonly isUnrecorded?: boolean;
}

export function openLauncher(options: LaunchedServerOptions): EngineLauncher {
  const { run, server, basis, machine, context, policy, asked, signal, killHolder } = options;
  const { host } = context;
  const { values, told, secrets } = launchEnvironment(server, host.env, options.isIdle !== true);
  const redact = openRedactor(secrets);
  const outer = outerMachineOf(server, context);
  const shelf = openBook(run.serverFolder, server.name, NOTHING_KEPT, redact);
  const emit: LauncherOptions['emit'] = ({ facts, ...happening }) =>
    options.emit({
      ...happening,
      facts: Object.fromEntries(
        Object.entries(facts).map(([key, value]) => [key, typeof value === 'string' ? redact(value) : value]),
      ),
    });
  const longest = Math.max(...run.partitions.map(({ ask }) => ask.sampling.maxTokens));
  return new EngineLauncher({
    ...{ name: server.name, engine: basis.engine, dialect: dialectOf(server.engine), machine, host, emit, signal, asked, policy },
    shelf: options.isUnrecorded === true ? withoutWriting(shelf) : shelf,
    place: placeOf(run, server),
    paths: () => launchPaths(run, server, machine),
    ...{ given: server.flags, env: told, values, headers: {}, patienceMs: run.patienceMs },
    policyRefuses: (flags) => refuseForbiddenLaunch({ run, server, basis, policy: policy() }, flags),
    version: () => basis.version,
    basis: () => recoveryBasisOf(basis),
    limits: () => ({ inFlight: run.inFlight, longestRequestTokens: longest }),
    plan: (flags) => planOf(basis, flags),
    checkRemedy,
    mirrorOf: (record) => mirrorOf(options, record),
    ...(killHolder === undefined ? {} : { killHolder }),
    ...(outer === undefined ? {} : { outer }),
    ...(context.lab === undefined ? {} : { isPlayed: true }),
  });
}

/** A machine of others may be gone tomorrow, and its log with it. */
function mirrorOf({ run, server, machine, context }: LaunchedServerOptions, { n, logPath }: LaunchRecord): LogMirror | undefined {
  if (machine.isHere) return undefined;
  return new LogMirror({ machine, logPath, folder: run.serverFolder, server: server.name, launch: n, onTrouble: context.onNote });
}

function placeOf(run: RunSpec, server: ServerSpec): LauncherOptions['place'] {
  return {
    server: server.name,
    model: run.model,
    port: server.port,
    setup: server.setup,
    command: server.command,
  };
}

/** What a launch that has become ready really is; its log is read to this moment. */
export async function verifyReady(
  { run, server, basis, machine, policy, emit }: LaunchedServerOptions,
  launcher: EngineLauncher,
  facts: ServerFacts,
): Promise<{ readonly facts: ServerFacts; readonly known: KnownLaunch; readonly log: LogFacts }> {
  const running = launcher.engine;
  if (running === undefined) throw new Error(`${server.name} is ready and was not launched`);
  await running.watch.look();
  const log = running.watch.logFacts;
  const { record } = running;
  const plan = planOf(basis, record.flags);
  const flags = sentFlags(running.record, dialectOf(server.engine), placeOf(run, server).model);
  const verified = verifyLaunch({ engine: basis.engine, log, server: facts, plan, flags, policy: policy() });
  emit({ kind: 'launch.verified', subject: server.name, facts: { launch: record.n, ...verifiedFacts(verified) } });
  await launcher.noteReady();
  await tellChange({ run, server, basis, machine, emit }, record, verified);
  const corrected: ServerFacts = {
    ...facts,
    kvCacheDtype: verified.kvType.type,
    poolTokens: verified.serverTokens,
    sequences: verified.maxRunningRequests,
    contextTokens: verified.contextTokens,
  };
  return { facts: corrected, known: { launchClass: verified.launchClass, flags: record.flags }, log };
}

/** Several levers that changed at once since the last verified launch: what is known of each, before anybody credits one of them. */
async function tellChange(
  { run, server, basis, machine, emit }: Pick<LaunchedServerOptions, 'run' | 'server' | 'basis' | 'machine' | 'emit'>,
  record: LaunchRecord,
  verified: VerifiedLaunch,
): Promise<void> {
  const shelf = openBook(run.serverFolder, server.name, NOTHING_KEPT);
  const before = await rememberSeen({ shelf, machine, engine: basis.engine }, record, verified);
  if (before === undefined) return;
  const change = compareSeen(before, seenOf(record, verified), (flags) => planOf(basis, flags)?.prediction.poolTokens);
  if (change === undefined || change.levers.length < 2) return;
  const facts = { launch: record.n, before: before.n, levers: change.levers.length, says: change.lines.join('\n') };
  emit({ kind: 'launch.compared', subject: server.name, facts });
}

/** For events. */
export function verifiedFacts({
  kvType,
  poolTokens,
  freeAfterGraphsGiB,
  maxRunningRequests,
  predicted,
  warnings,
}: VerifiedLaunch): Facts {
  return {
    ...{ poolTokens, kvCacheDtype: kvType.type, how: kvType.how, maxRunningRequests },
    ...(freeAfterGraphsGiB === undefined ? {} : { freeAfterGraphsGiB }),
    ...(predicted === undefined
      ? {}
      : {
          predictedTokens: predicted.poolTokens,
          differencePercent: predicted.differencePercent,
          insideRange: predicted.insideRange,
        }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.join('; ') }),
  };
}

/** What this launch measured, for the next plan and for the next recovery. */
export async function rememberReady(ready: {
  readonly run: RunSpec;
  readonly basis: LaunchBasis;
  readonly log: LogFacts;
  readonly host: Host;
  readonly flags: Flags;
}): Promise<void> {
  const { run, basis, log, host, flags } = ready;
  if (basis.gpu === undefined) return;
  const key = { model: run.model, engine: basis.engine, version: log.version ?? basis.version, gpu: basis.gpu.name };
  await rememberLaunch(key, wordsOf(flags, basis.engine === 'vllm' ? VLLM_LINE : SGLANG_LINE), plainFactsOf(log), host);
}

/** With what is added to every launch: model, host, port, metrics. */
export function sentFlags({ flags, port }: LaunchRecord, { launching }: Dialect, model: string): LaunchFlags {
  return launching?.effectiveFlags({ model, host: LOOPBACK, port, flags }) ?? flags;
}
