/**
 * `aerie server verify`: a look at the servers that Aerie launched: do they live, what are they really, and is every rule
 * kept? Reads and asks; changes nothing, also while a worker is at work.
 */
import { openRedactor } from '../../base/redact.ts';
import type { LiveVerdict } from '../../diagnosis/live/look.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import { dialectOf } from '../../engine/dialects.ts';
import { readFacts } from '../../server/endpoint.ts';
import { machineOfLaunch } from '../../server/launch/contained-launch.ts';
import type { ChangeExplained } from '../../server/launch/explain-change.ts';
import { addressOfLaunch } from '../../server/launch/launch-address.ts';
import { type LaunchRecord, openBook, type ServerBook } from '../../server/launch/launch-book.ts';
import { LaunchWatch } from '../../server/launch/launch-watch.ts';
import { compareSeen, findBefore, loadOf, seenOf } from '../../server/launch/seen-launches.ts';
import type { VerifiedLaunch } from '../../server/launch/verified-launch.ts';
import { verifyLaunch } from '../../server/launch/verify-launch.ts';
import { NOTHING_KEPT } from '../../server/recovery/kept-changes.ts';
import { isBroken } from '../../spec/policy.ts';
import type { PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { findRun } from '../find-run.ts';
import { rulesOf } from '../policy-in-force.ts';
import { addressThere } from '../servers/address-there.ts';
import { type LaunchBasis, obtainBasis, planOf } from '../servers/launch-basis.ts';
import { sentFlags } from '../servers/launched-server.ts';
import { machineOf } from '../servers/machine-of.ts';
import { openLaunchWay } from '../servers/open-way.ts';
import { secretsAtHand } from '../servers/secrets.ts';
import { chooseServers, type ServerInput } from './choose-servers.ts';

export interface ServerVerifyReport {
  readonly run: string;
  readonly servers: readonly VerifiedServer[];
  /** All are ready or serving, and every rule is kept. */
  readonly isWell: boolean;
}

export interface VerifiedServer {
  readonly name: string;
  /** 0 = none is known. */
  readonly launch: number;
  readonly pid: number;
  readonly baseUrl: string;
  /** Its address there, where it is on another machine: `baseUrl` ends with this command. '' = on this one. */
  readonly at: string;
  /** Launches so far. */
  readonly launches: number;
  readonly log: string;
  /** Undefined: Aerie has launched none. */
  readonly verdict: LiveVerdict | undefined;
  /** Undefined where it is not ready, or did not say what it is. */
  readonly verified: VerifiedLaunch | undefined;
  /** Against the last verified launch with other flags; undefined where there is none. */
  readonly change: ChangeExplained | undefined;
  /** Why it could not be verified although it is up; '' = it could, or is not up. */
  readonly unverified: string;
  readonly isWell: boolean;
}

export async function runServerVerify(input: ServerInput, context: OperationContext): Promise<ServerVerifyReport> {
  const { run } = await findRun(input.run);
  const policy = await rulesOf(input.run, run, context.host);
  const servers: VerifiedServer[] = [];
  for (const server of chooseServers(run, input)) servers.push(await verifyServer(run, server, policy, context));
  return { run: run.name, servers, isWell: servers.every(({ isWell }) => isWell) };
}

async function verifyServer(
  run: RunSpec,
  server: ServerSpec,
  policy: readonly PolicyRule[],
  context: OperationContext,
): Promise<VerifiedServer> {
  const book = await openBook(run.serverFolder, server.name, NOTHING_KEPT).read();
  const { current } = book;
  const none = {
    name: server.name,
    launch: 0,
    pid: 0,
    baseUrl: '',
    at: '',
    launches: book.launches,
    log: '',
    verdict: undefined,
    verified: undefined,
    change: undefined,
    unverified: '',
    isWell: false,
  };
  if (current === undefined) return none;
  const { host } = context;
  const machine = machineOf(server, context);
  const dialect = dialectOf(server.engine);
  const at = await addressOfLaunch(machine, current);
  const reach = await openLaunchWay(machine, current, at, context);
  const control = host.openHttp({ baseUrl: reach.baseUrl, connections: 2, isDirect: true });
  const asked = () => ({ inFlight: 0, answered: 0 });
  const watch = new LaunchWatch({
    launch: current,
    machine: machineOfLaunch(machine, current),
    dialect,
    control,
    reach,
    clock: host.clock,
    asked,
    onLook: () => undefined,
  });
  try {
    // Counters are asked of a port that is known to answer: by the second look.
    await watch.look();
    const verdict = await watch.look();
    const isUp = verdict.state === 'ready' || verdict.state === 'serving' || verdict.state === 'degraded';
    const asking = { client: control, clock: host.clock, signal: context.abort };
    const facts = isUp ? await readFacts(asking, { dialect, server: server.name, model: run.model }) : '';
    const basis = await obtainBasis(run, server, machine, { ...context, onNote: () => undefined });
    const verified =
      typeof facts === 'string'
        ? undefined
        : verifyLaunch({
            ...{ engine: basis.engine, log: watch.logFacts, server: facts, policy },
            flags: sentFlags(current, dialect, run.model),
            plan: planOf(basis, current.flags),
          });
    const isWell = verified?.policy.every((check) => !isBroken(check)) === true;
    const change = verified === undefined ? undefined : changeOf(book, current, { verified, basis, log: watch.logFacts });
    const unverified = at.kind !== 'listens' ? at.says : typeof facts === 'string' ? facts : '';
    const baseUrl = at.kind === 'listens' ? reach.baseUrl : '';
    const redact = openRedactor(secretsAtHand(server, host.env));
    const evidence = verdict.evidence.map((one) => ({ ...one, text: redact(one.text) }));
    const found = { verdict: { ...verdict, evidence }, verified, change, unverified, isWell };
    return { ...none, ...placeOf(current), baseUrl, at: addressThere(machine, current.port), ...found };
  } finally {
    watch.close();
    await control.close();
    await reach.close();
  }
}

function changeOf(
  book: ServerBook,
  current: LaunchRecord,
  { verified, basis, log }: { readonly verified: VerifiedLaunch; readonly basis: LaunchBasis; readonly log: LogFacts },
): ChangeExplained | undefined {
  const before = findBefore(book, current, basis.engine);
  if (before === undefined) return undefined;
  const load = loadOf(log.samples);
  const now = { ...seenOf(current, verified), ...(load === undefined ? {} : { load }) };
  return compareSeen(before, now, (flags) => planOf(basis, flags)?.prediction.poolTokens);
}

function placeOf({ n, identity, logPath }: LaunchRecord) {
  return { launch: n, pid: identity?.pid ?? 0, log: logPath };
}
