/** A probed server for people and for `--json`: what was seen of it, judged. Secrets are taken out here, and nowhere later. */
import { redactAll } from '../../base/redact-shapes.ts';
import type { Account } from '../../diagnosis/account.ts';
import type { LiveState } from '../../diagnosis/live/look.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import { judgeProbe } from '../../diagnosis/probe/judge-probe.ts';
import type { Evidence } from '../../diagnosis/verdict.ts';
import type { Clock } from '../../host/host.ts';
import type { OperationContext } from '../context.ts';
import { type LaunchBasis, obtainBasis } from '../servers/launch-basis.ts';
import { capacityOf, measureServer } from './measure.ts';
import type { PlaceProbe } from './probe-place.ts';
import type { EarlyServer, ProbedServer } from './report.ts';
import type { ServerProbe } from './server-probe.ts';

export function earlyServer(server: ServerProbe, machine: string): EarlyServer {
  return redactAll(seenOf(server, machine), server.subject.redact);
}

function seenOf(server: ServerProbe, machine: string): EarlyServer {
  const { health } = server.questions;
  return {
    ...{ name: server.subject.name, machine, address: server.address, engine: server.engine ?? '' },
    ...{ process: server.process, log: server.seenLog },
    health: health === undefined ? undefined : { answer: health.health, because: health.because },
    capacity: capacityOf(factsOf(server), server.questions.facts?.facts),
  };
}

export interface DescribeAround {
  readonly place: PlaceProbe;
  readonly context: OperationContext;
  readonly clock: Clock;
  /** By the clock: when the answer is due. */
  readonly within: number;
}

export async function probedServer(server: ServerProbe, around: DescribeAround): Promise<ProbedServer> {
  const { subject } = server;
  const { machine } = around.place.place;
  if (server.isUnread) await server.read();
  const evidence = server.evidence();
  const { verdict, activity, hypotheses } = judgeProbe(evidence);
  const log = factsOf(server);
  const facts = server.questions.facts?.facts;
  const basis = await basisOf(server, around);
  const { verified, policy } = measureServer({ known: subject.known, engine: evidence.engine, log, server: facts, basis });
  const probed: ProbedServer = {
    ...seenOf(server, machine.name),
    capacity: capacityOf(log, facts, verified),
    ...{ verdict, activity, hypotheses, verified, policy },
    errors: errorsOf(server.log?.account()),
    unseen: unseenOf(server, around.place, verdict.state),
    isReady: verdict.state === 'ready' || verdict.state === 'serving',
    isPolicyKept: policy.every(({ broken }) => !broken),
  };
  return redactAll(probed, subject.redact);
}

/** Of the log only where an engine wrote it. */
function factsOf({ log }: ServerProbe): LogFacts | undefined {
  const account = log?.account();
  return account === undefined || account.recognised === 0 ? undefined : account.facts;
}

/** What the arithmetic needs may lie on a hub, or behind a driver that hangs: it is not waited for longer than the probe lasts. */
async function basisOf(server: ServerProbe, { place, context, clock, within }: DescribeAround): Promise<LaunchBasis | undefined> {
  const { known } = server.subject;
  if (known?.launch === undefined) return undefined;
  const obtaining = obtainBasis(known.run, known.server, place.place.machine, { ...context, onNote: () => undefined });
  const isThere = new AbortController();
  const late = clock.sleep(Math.max(500, within - clock.elapsed()), isThere.signal).then(() => undefined);
  try {
    return await Promise.race([obtaining.catch(() => undefined), late]);
  } finally {
    isThere.abort(); // else the process waits for the clock
  }
}

function sayNoAddress(isNamed: boolean, process: ServerProbe['process']): string[] {
  if (!isNamed) return ['health and its own account: its address is not known. Give --url http://…'];
  return process?.presence === 'gone'
    ? []
    : [
        'health and its own account: docker does not tell where it can be reached. Publish its port (docker run -p …), or give --url http://…',
      ];
}

/** Lines kept of a log with a thousand errors. */
const MOST_ERRORS = 10;

/** Lines that fit a rule or say that a part ended, by their numbers. */
function errorsOf(account: Account | undefined): Evidence[] {
  if (account === undefined) return [];
  const { found, deaths, openTraceback } = account;
  const serious = found.filter(({ rule }) => rule.state !== 'serving' && rule.state !== 'ready');
  const all = [...serious, ...deaths, ...(openTraceback === undefined ? [] : [openTraceback])];
  const lines = new Map(all.map(({ line, text }) => [line, { line, text: text.slice(0, 500) }]));
  return [...lines.values()].sort((a, b) => a.line - b.line).slice(-MOST_ERRORS);
}

function unseenOf(server: ServerProbe, place: PlaceProbe, state: LiveState): string[] {
  const { subject, log, process, address } = server;
  const { facts, health } = server.questions;
  const machine = place.report();
  const isClosed = health?.health.kind === 'refused';
  // What docker said of it, or could not say, stands there already.
  const isNamed = subject.container !== '';
  return [
    ...subject.notes,
    ...server.unseen,
    ...server.questions.unseen,
    ...(machine.because === '' ? [] : [`${machine.name}: ${machine.because}`]),
    ...(log === undefined && server.logPath === '' && server.unseen.length === 0
      ? ['its log: nobody says where it is. Give --log FILE']
      : []),
    ...(log === undefined || log.unread === '' ? [] : [log.unread]),
    ...(process === undefined && machine.because === '' && !isNamed
      ? [`its process: no engine of this port or log is seen on ${machine.name}`]
      : []),
    ...(state === 'absent' && health?.health.kind === 'http'
      ? [`an engine: what answers with ${health.health.status} there may be anything`]
      : []),
    ...(address === '' ? sayNoAddress(isNamed, process) : []),
    ...(facts === undefined && address !== '' && !isClosed ? ['its own account: it was not told in time'] : []),
    ...(facts?.unseen ?? []),
    ...(subject.known === undefined ? ['rules of policy: a run file has them'] : []),
  ];
}
