/**
 * A server of SGLang or vLLM that somebody else started: the way to it, its log, and what it really is. It is looked at and never acted on.
 * Promises: rules are asked about what its log and its own account prove; a log that contradicts it is not taken for its own; what is
 * missing is said once, with what it costs; no key of its command line or its log is shown.
 */

import { isSameType } from '../../base/element-type.ts';
import type { Happening } from '../../base/events.ts';
import { openRedactor } from '../../base/redact.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Account } from '../../diagnosis/account.ts';
import type { ServerFacts } from '../../engine/dialect.ts';
import type { LaunchFlags } from '../../engine/launching.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { openSubject } from '../../server/attach/attached-subject.ts';
import type { AttachedWatch } from '../../server/attach/attached-watch.ts';
import { flagsOfCommand } from '../../server/attach/command-words.ts';
import { findServerLog } from '../../server/attach/find-log.ts';
import { costsOfMissingLog } from '../../server/attach/missing-log.ts';
import { whyNotItsLog } from '../../server/attach/own-log.ts';
import { openServerLog } from '../../server/attach/read-server-log.ts';
import { nameOfLog, type ServerLog } from '../../server/attach/server-log.ts';
import type { LogSource } from '../../server/launch/log-source.ts';
import type { VerifiedLaunch } from '../../server/launch/verified-launch.ts';
import { verifyLaunch } from '../../server/launch/verify-launch.ts';
import type { Attachment, PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import type { KnownLaunch } from './admit-launch.ts';
import { logPlaceOf, openAttachment, whoAnswers } from './attachment.ts';
import { obtainBasis, planOf } from './launch-basis.ts';
import { verifiedFacts } from './launched-server.ts';
import { machineOf } from './machine-of.ts';
import { type Sender, watchAttached } from './watch-attached.ts';

export interface AttachedServerOptions {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly attach: Attachment;
  readonly engine: PlannedEngine;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  readonly policy: () => readonly PolicyRule[];
  readonly signal: AbortSignal;
  readonly asked: () => { readonly inFlight: number; readonly answered: number };
  /** Who sends it requests. */
  readonly sender: () => Sender | undefined;
}

export class AttachedServer {
  readonly #options: AttachedServerOptions;
  readonly #machine: Machine;
  #watch: AttachedWatch | undefined;
  /** As it was last told. */
  #who = '';

  constructor(options: AttachedServerOptions) {
    this.#options = options;
    this.#machine = machineOf(options.server, options.context, options.run.patienceMs);
  }

  /** A container that does not run yet is waited for, as any server is. */
  async open(): Promise<Reach> {
    return await openAttachment(this.#options, this.#machine);
  }

  /** The same, and watched until the way is closed. */
  async openWatched(): Promise<Reach> {
    const reach = await this.open();
    const emit = (happening: Happening) => this.#options.emit({ ...happening, facts: this.#redacted(happening.facts) });
    const watched = watchAttached({ ...this.#options, emit }, this.#machine, reach);
    this.#watch = watched.watch;
    return watched.reach;
  }

  /** Why nothing is sent to it though it looks well; '' = nothing speaks against it. */
  get heldBack(): string {
    return this.#watch?.whyHeldBack ?? '';
  }

  /** Differs where another process answers than before, or the same log shows another start; '' = that is not to be told. */
  async whoAnswers(): Promise<string> {
    this.#who = await whoAnswers(this.#options, this.#machine);
    const lives = this.#watch?.lives ?? 0;
    return lives === 0 ? this.#who : `${this.#who} life ${lives}`;
  }

  /** What a server that is ready really is; its log is read whole, to this moment. */
  async verify(facts: ServerFacts): Promise<{ readonly facts: ServerFacts; readonly known: KnownLaunch }> {
    const { engine, policy, emit, server } = this.#options;
    const { log, account, source } = await this.#readLog(facts);
    this.#watch?.adopt(await openSubject(this.#machine, log, source, account !== undefined), this.#who);
    const flags = this.#flagsOf(log);
    const plan = await this.#planOf(facts, account, flags);
    const verified = verifyLaunch({ engine, log: account?.facts, server: facts, plan, flags, policy: policy() });
    this.#sayLog(log, account, verified);
    emit({ kind: 'server.verified', subject: server.name, facts: this.#redacted(verifiedFacts(verified)) });
    return { facts: correct(facts, verified), known: { launchClass: verified.launchClass, flags } };
  }

  async #readLog(facts: ServerFacts): Promise<ReadLog> {
    const { engine, signal } = this.#options;
    const place = logPlaceOf(this.#options);
    if ('kind' in place) return { log: place, source: undefined };
    const log = await findServerLog(this.#machine, place, engine === 'sglang' ? 'stderr' : 'stdout');
    const source = await openServerLog(this.#machine, log, engine);
    if (source === undefined) return { log, source };
    while (!(await source.readOn()) && !signal.aborted);
    const account = source.account();
    const whyNot = whyNotItsLog(engine, account, facts);
    if (whyNot === '') return { log, source, account };
    const { process, container } = log;
    const seen = { ...(process === undefined ? {} : { process }), ...(container === undefined ? {} : { container }) };
    const because = `${nameOfLog(log)} is not its log: ${whyNot}`;
    return { log: { kind: 'none', because, remedy: 'Name its own with log: in the run file.', ...seen }, source: undefined };
  }

  /** Of the process or the container; secrets are left out. */
  #flagsOf({ process, container }: ServerLog): LaunchFlags {
    const given = [process?.words ?? [], container?.words ?? []].map(flagsOfCommand);
    return given.find((flags) => Object.keys(flags).length > 0) ?? {};
  }

  /** Only where bytes per token can tell the type of the KV cache: the shape of a model may have to be fetched. */
  async #planOf(facts: ServerFacts, account: Account | undefined, flags: LaunchFlags) {
    const { run, server, context } = this.#options;
    if (account?.facts.poolGiB === undefined && facts.kvBytesPerToken === 0) return undefined;
    const version = server.engineVersion === '' ? facts.engineVersion : server.engineVersion;
    const basis = await obtainBasis(run, { ...server, engineVersion: version }, this.#machine, {
      ...context,
      onNote: () => undefined,
    });
    return planOf(basis, Object.keys(flags).length > 0 ? flags : loggedFlags(account));
  }

  #sayLog(log: ServerLog, account: Account | undefined, { kvType, poolTokens }: VerifiedLaunch): void {
    const { emit, server, policy } = this.#options;
    if (log.kind !== 'none') {
      const { lines } = account ?? { lines: 0 };
      const deleted = log.kind === 'file' && log.isDeleted ? { isDeleted: true } : {};
      emit({ kind: 'server.log-found', subject: server.name, facts: this.#redacted({ log: nameOfLog(log), lines, ...deleted }) });
    }
    const costs = costsOfMissingLog({ log: account?.facts, kvType, poolTokens, policy: policy() });
    if (costs.length === 0) return;
    const why =
      log.kind === 'none'
        ? { because: log.because, remedy: log.remedy }
        : { because: `${nameOfLog(log)} does not say all`, remedy: '' };
    emit({ kind: 'server.log-missing', subject: server.name, facts: this.#redacted({ ...why, costs: costs.join('\n') }) });
  }

  /** A log shows the key that the server was started with. */
  #redacted(facts: Happening['facts']): Happening['facts'] {
    const { server, context } = this.#options;
    const key = server.apiKeyName === undefined ? undefined : context.host.env[server.apiKeyName];
    const redact = openRedactor(key === undefined ? [] : [key]);
    return Object.fromEntries(
      Object.entries(facts).map(([name, value]) => [name, typeof value === 'string' ? redact(value) : value]),
    );
  }
}

interface ReadLog {
  readonly log: ServerLog;
  readonly source: LogSource | undefined;
  readonly account?: Account;
}

/** Its own word for the type stays where it says the same: what a run began with is compared by it. */
function correct(facts: ServerFacts, { kvType, serverTokens, maxRunningRequests, contextTokens }: VerifiedLaunch): ServerFacts {
  const kvCacheDtype = isSameType(facts.kvCacheDtype, kvType.type) ? facts.kvCacheDtype : kvType.type;
  return { ...facts, kvCacheDtype, poolTokens: serverTokens, sequences: maxRunningRequests, contextTokens };
}

/** SGLang prints every argument, those that nobody gave as None. */
function loggedFlags(account: Account | undefined): LaunchFlags {
  const entries = Object.entries(account?.facts.arguments ?? {}).filter(([, value]) => value !== 'None' && value !== 'False');
  return Object.fromEntries(entries.map(([name, value]) => [name.replaceAll('_', '-'), value === 'True' ? true : value]));
}
