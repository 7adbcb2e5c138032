/**
 * What a worker does between its start and its end: sessions, with a pause between two where a rule comes. A session is
 * enrolment and generation side by side.
 */
import type { AerieError } from '../base/errors.ts';
import { AERIE_VERSION } from '../base/version.ts';
import { runSession, type SessionEnd } from '../generation/session.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { Provenance } from '../shard/record.ts';
import type { RunSpec } from '../spec/run.ts';
import { watchControl } from './control.ts';
import { plantCrash } from './crash-points.ts';
import { applyRule } from './policy/apply-rule.ts';
import { findBroken } from './policy/judge-launches.ts';
import { keepRule } from './policy/keep-rule.ts';
import { RuleDesk, type RuleRequest } from './policy/rule-desk.ts';
import { watchProgress } from './watch-progress.ts';
import { type Job, openWorkplace, type Workplace } from './workplace.ts';

export interface Worked {
  readonly end: SessionEnd;
  /** Servers of the run file that took no part to the end. */
  readonly leftOut: readonly { readonly server: string; readonly because: string }[];
  readonly tokens: number;
  readonly mostInFlight: number;
}

/**
 * Session after session: a rule that comes makes a pause. What is in flight ends, the rule withdraws what breaks it, and the
 * next session begins with servers that keep it.
 */
export async function workUnderRules(job: Job): Promise<Worked> {
  const { run, context } = job;
  const desk = new RuleDesk();
  const over = new AbortController();
  const watching = watchControl({
    ...{ folder: run.folder, clock: context.host.clock, signal: over.signal },
    onRule: (rule) => desk.ask(rule),
  });
  try {
    let sum = { tokens: 0, mostInFlight: 0 };
    for (;;) {
      const place = await openWorkplace(job);
      let end: SessionEnd;
      try {
        end = await generate(job, place, desk);
      } finally {
        await place.close();
      }
      const { tally, fleet } = place;
      sum = { tokens: sum.tokens + tally.sessionTokens, mostInFlight: Math.max(sum.mostInFlight, tally.mostInFlight) };
      const asked = desk.take();
      if (asked !== undefined) await carryOut(asked, job);
      if (asked === undefined || end.kind === 'stopped' || context.drain.aborted)
        return { end, leftOut: fleet.leftOut(), ...sum };
    }
  } finally {
    over.abort();
    desk.close();
    await watching;
  }
}

/** Nobody has a lease: the session is over. */
async function carryOut({ rule, answer, refuse }: RuleRequest, { run, ledger, context, emit, onEvents }: Job): Promise<void> {
  try {
    ledger.releaseLeases();
    const at = plantCrash(context.host);
    const { outcome, events } = applyRule(rule, ledger, () => at('after-rule'));
    onEvents(events);
    answer({ ...outcome, unkept: await keepRule(rule, { run, ledger, context, emit }) });
  } catch (thrown) {
    refuse(thrown);
  }
}

/** The session, with enrolment beside it: rows that cannot be read end it as Ctrl-C would, and are the error. */
async function generate(job: Job, place: Workplace, desk: RuleDesk): Promise<SessionEnd> {
  const { run, ledger, context, emit } = job;
  const { clock, random } = context.host;
  const { fleet, tally, gate, committer, enrolments, prompts } = place;
  context.onProgress(watchProgress({ run, ledger, tally, gate, clock, enrolments, drain: context.drain }));
  const stopping = new AbortController();
  const dropping = new AbortController();
  let unreadable: unknown;
  enrolments.start((thrown) => {
    unreadable = thrown;
    stopping.abort();
  });
  const onDrain = () => sayDraining(job, tally.attemptsInFlight);
  context.drain.addEventListener('abort', onDrain, { once: true });
  const unhear = desk.onAsk((rule) => {
    const inUse = fleet.launchesInUse();
    const broken = findBroken(rule, ledger.launches()).filter(({ launch }) => inUse.includes(launch.id));
    // What only forbidden launches are answering would be withdrawn: it is not waited for.
    if (broken.length > 0 && broken.length === inUse.length) dropping.abort();
    stopping.abort();
  });
  const end = await runSession({
    ...{ run, isStrict: job.isStrict, ledger, fleet, committer, tally, gate, clock, random, emit, prompts },
    enrolment: enrolments,
    drain: AbortSignal.any([context.drain, stopping.signal]),
    abort: AbortSignal.any([context.abort, dropping.signal]),
    provenanceOf: (endpoint) => provenanceOf(run, endpoint),
  });
  unhear();
  context.drain.removeEventListener('abort', onDrain);
  if (unreadable === undefined || end.kind === 'stopped') return end;
  return { kind: 'stopped', error: unreadable as AerieError };
}

/** Called by a signal: what it cannot write must not end the process. */
function sayDraining({ run, context, emit }: Job, inFlight: number): void {
  if (inFlight === 0 || context.abort.aborted) return;
  try {
    emit({ kind: 'run.draining', subject: run.name, facts: { inFlight } });
  } catch {
    // the session meets the same disk at its next commit, and says so
  }
}

function provenanceOf(run: RunSpec, { facts, dialect, launch }: Endpoint): Provenance {
  return {
    model: facts.model === '' ? run.model : facts.model,
    revision: facts.revision,
    engine: dialect.name,
    engineVersion: facts.engineVersion,
    weights: facts.weights,
    kvCacheDtype: facts.kvCacheDtype,
    templateHash: facts.templateHash,
    launch,
    aerie: AERIE_VERSION,
  };
}
