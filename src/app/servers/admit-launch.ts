/** After a launch or an attachment: what the server really is, against policy and against what the run began with. */
import { isKnown } from '../../base/element-type.ts';
import { AerieError } from '../../base/errors.ts';
import type { Facts, Happening } from '../../base/events.ts';
import { sha256Hex } from '../../base/ids.ts';
import { type FoundTemplate, NO_TEMPLATE } from '../../base/prompt-template.ts';
import type { ServerFacts } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import type { Host } from '../../host/host.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { type Difference, launchDifferences } from '../../spec/identity.ts';
import { checkPolicy, describeRule, isBroken, type LaunchClass } from '../../spec/policy.ts';
import type { PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import { classOfFacts } from '../policy/judge-launches.ts';
import { amended, launchFacts } from '../run-folder.ts';
import { refuseShortContext } from './refuse-short-context.ts';

export interface AdmitOptions {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly clock: Host['clock'];
  readonly emit: (happening: Happening) => void;
  readonly isAmending: boolean;
  /** Rules in force now: those of the run file, and those that were added. */
  readonly policy: () => readonly PolicyRule[];
  /** Of a launch of Aerie's own. */
  readonly known?: KnownLaunch;
  /** Of its model, where this server's prompts are rendered here; left out: none is at hand. */
  readonly template?: FoundTemplate;
}

/** What is known of a server beyond what it says of itself. */
export interface KnownLaunch {
  readonly launchClass: LaunchClass;
  /** As it was started; secrets by name. */
  readonly flags: ServerSpec['flags'];
}

/** Throws where the server may not answer for this run; else records the launch and returns its id. */
export function admitLaunch(server: ServerSpec, facts: ServerFacts, baseUrl: string, options: AdmitOptions): number {
  const { run, ledger, emit, clock, policy, known } = options;
  const rules = policy();
  for (const check of checkPolicy(rules, known?.launchClass ?? classOfFacts(facts))) {
    const { rule, kept, because } = check;
    emit({ kind: 'policy.checked', subject: server.name, facts: { rule: describeRule(rule), kept, because } });
    if (!isBroken(check)) continue;
    throw new AerieError('policy.broken', `${server.name} breaks a rule of run ${run.name}: ${because}.`, {
      because: `${rule.because} (decided by ${rule.by})`,
      remedy: 'Nothing was asked of it. Start the server as the rule wants it, then run the same command again.',
    });
  }
  refuseTextOnly(server, facts, options);
  refuseShortContext(run, server, facts);
  const { model, revision, weights, kvCacheDtype, templateHash } = facts;
  const now = { model, revision, weights, kvCacheDtype, templateHash };
  const before = launchFacts(ledger.identity());
  const differences = launchDifferences({ ...now, ...before }, now);
  if (differences.length > 0 && !options.isAmending) throw isUnlike(run, server, differences);
  if (differences.length > 0) emit(amended(run, differences));
  const kept = differences.length > 0 ? {} : before;
  const told = Object.entries(now).map(([key, value]) => [`launch.${key}`, isKnown(kept[key] ?? '') ? kept[key] : value]);
  ledger.setIdentity({ ...ledger.identity(), ...Object.fromEntries(told), ...tokenFacts(facts, ledger.identity()) });
  const id = ledger.recordLaunch({
    server: server.name,
    engine: server.engine,
    engineVersion: facts.engineVersion,
    kvCacheDtype,
    weights,
    policyHash: sha256Hex(JSON.stringify(rules)),
    detail: JSON.stringify({
      flags: known?.flags ?? server.flags,
      attach: server.attach?.written ?? '',
      baseUrl,
      apiKeyName: server.apiKeyName ?? '',
      facts,
      // What it was judged by, for a rule that comes later.
      ...(known === undefined ? {} : { class: known.launchClass }),
    }),
    startedAt: clock.now(),
  });
  emit({
    kind: 'launch.recorded',
    subject: server.name,
    facts: { launch: id, engineVersion: facts.engineVersion, kvCacheDtype, weights },
  });
  return id;
}

/** An answer goes on from its ids. */
function refuseTextOnly(server: ServerSpec, facts: ServerFacts, { run, template = NO_TEMPLATE }: AdmitOptions): void {
  const continued = run.partitions.find(({ continuations }) => continuations > 0);
  if (continued === undefined) return;
  const { extraBody } = continued.ask;
  const { exact, because } = dialectOf(server.engine).exactness(facts, { template, hasTools: false, extraBody });
  if (exact) return;
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
