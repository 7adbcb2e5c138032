/**
 * One worker's session on a run: lease → prompt → converse → commit, until nothing is left, the operator asks to stop,
 * or something makes going on pointless.
 *
 *   running ──nothing left──▶ finished
 *      ├──drain (Ctrl-C)────▶ draining: what is in flight ends, nothing new begins ──▶ drained
 *      ├──abort (2nd Ctrl-C, SIGTERM)──▶ what is in flight is given up ──▶ aborted
 *      └──stop(error)───────▶ as abort, with the error
 *
 * In every case the committer is emptied before the session returns, so what was answered is on disk.
 */
import { setMaxListeners } from 'node:events';
import { AerieError, bug } from '../base/errors.ts';
import type { Happening } from '../base/events.ts';
import { parsePromptLine } from '../dataset/prompt-id.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Clock, Random } from '../host/host.ts';
import type { Lease, Ledger } from '../ledger/ledger.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { LineReader } from '../shard/line-reader.ts';
import type { Provenance } from '../shard/record.ts';
import type { RunSpec } from '../spec/run.ts';
import { decideAdmission } from './budget.ts';
import type { Committer } from './committer.ts';
import { converse } from './converse.ts';
import type { Conversing } from './conversing.ts';
import { Gate, Slot } from './gate.ts';
import { GateKeeper } from './gate-keeper.ts';
import { RenderedPrompts } from './rendered-prompts.ts';
import type { Tally } from './tally.ts';
import { Trials } from './trial.ts';

export interface SessionOptions {
  readonly run: RunSpec;
  readonly isStrict: boolean;
  readonly ledger: Ledger;
  readonly fleet: Fleet;
  readonly committer: Committer;
  readonly tally: Tally;
  readonly gate: Gate;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: (happening: Happening) => void;
  /** Prompt files by partition. */
  readonly prompts: (partition: string) => LineReader;
  /** Partitions whose source is still being read, and a promise for its next batch. */
  readonly enrolment: { isOpen(partition: string): boolean; changed(): Promise<void> };
  readonly drain: AbortSignal;
  readonly abort: AbortSignal;
  readonly provenanceOf: (endpoint: Endpoint) => Provenance;
}

export type SessionEnd =
  | { readonly kind: 'finished' | 'drained' }
  /** What was in flight when it was given up. */
  | { readonly kind: 'aborted'; readonly requests: number; readonly tokens: number }
  | { readonly kind: 'stopped'; readonly error: AerieError };

/** Leases taken at once: enough that the loop never waits for SQLite, few enough to give back quickly. */
const LEASE_AHEAD = 64;
/** Conversations under way for each slot: those that wait out a backoff make room for others, but trouble does not draw in the whole source. */
const UNDER_WAY_PER_SLOT = 2;

export async function runSession(options: SessionOptions): Promise<SessionEnd> {
  const session = new Session(options);
  return await session.run();
}

class Session {
  readonly #options: SessionOptions;
  readonly #gate: Gate;
  readonly #conversing: Conversing;
  /** Ends new work: the operator's drain, or a stop of our own. */
  readonly #ending = new AbortController();
  readonly #givingUp = new AbortController();
  #stopError: AerieError | undefined;
  #givenUp = { requests: 0, tokens: 0 };
  readonly #ahead: Lease[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly #reached = new Set<string>();
  readonly #gateKeeper: GateKeeper;
  #wake: (() => void) | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#gate = options.gate;
    const drain = this.#ending.signal;
    const abort = this.#givingUp.signal;
    this.#gateKeeper = new GateKeeper({ ...options, stop: (error) => this.#stop(error) });
    // One listener for each request in flight and each backoff; all are taken off again.
    setMaxListeners(0, drain, abort);
    const { run, fleet, clock } = options;
    this.#conversing = {
      ...options,
      suspects: new Gate(1),
      trials: new Trials({ run, fleet, clock, abort }),
      rendered: new RenderedPrompts(),
      drain,
      abort,
      stop: (error) => this.#stop(error),
    };
  }

  async run(): Promise<SessionEnd> {
    const { drain, abort, clock, committer } = this.#options;
    const onDrain = () => this.#end();
    const onAbort = () => this.#giveUp();
    drain.addEventListener('abort', onDrain, { once: true });
    abort.addEventListener('abort', onAbort, { once: true });
    if (drain.aborted) onDrain();
    if (abort.aborted) onAbort();
    // Nothing that is answered from now on could be kept.
    committer.whenFailed((thrown) => this.#stop(thrown));
    const ramp = this.#gate.ramp(clock, this.#ending.signal);
    this.#gateKeeper.begin();
    void this.#hearEnrolment();
    try {
      await this.#admitPrompts();
    } catch (thrown) {
      this.#stop(thrown);
    }
    await Promise.all(this.#underWay);
    this.#giveLeasesBack();
    this.#end();
    await ramp;
    this.#gateKeeper.end();
    drain.removeEventListener('abort', onDrain);
    abort.removeEventListener('abort', onAbort);
    await committer.close().catch((thrown: unknown) => this.#stop(thrown));
    if (this.#stopError !== undefined) return { kind: 'stopped', error: this.#stopError };
    if (abort.aborted) return { kind: 'aborted', ...this.#givenUp };
    return { kind: drain.aborted ? 'drained' : 'finished' };
  }

  /** The main loop: a slot, a prompt, a conversation. It never waits for a prompt with a slot in its hand. */
  async #admitPrompts(): Promise<void> {
    for (;;) {
      await this.#gate.enter(false);
      await this.#options.committer.room();
      const next = this.#underWay.size < this.#gate.limit * UNDER_WAY_PER_SLOT ? this.#nextLease() : 'later';
      if (typeof next === 'object') {
        this.#begin(next);
        continue;
      }
      this.#gate.leave();
      if (next === undefined) return;
      await this.#somethingChanged();
    }
  }

  #begin(lease: Lease): void {
    const slot = new Slot(this.#gate);
    this.#options.tally.began(lease.partition, lease.turns - lease.finishedTurns.length);
    const conversation = this.#converse(lease, slot)
      .catch((thrown: unknown) => this.#stop(thrown))
      .finally(() => {
        slot.leave();
        this.#underWay.delete(conversation);
        this.#gateKeeper.answered();
        this.#wake?.();
      });
    this.#underWay.add(conversation);
  }

  async #converse(lease: Lease, slot: Slot): Promise<void> {
    const line = await this.#options.prompts(lease.partition).read(lease.offset, lease.bytes);
    await converse(lease, parsePromptLine(line), slot, this.#conversing);
  }

  /** The next prompt to begin; 'later' where enrolment or an answer may bring one; undefined: nothing left, or ending. */
  #nextLease(): Lease | 'later' | undefined {
    if (this.#ending.signal.aborted) return undefined;
    let canChange = false;
    for (const { name } of this.#options.run.partitions) {
      const next = this.#takeFrom(name);
      if (next === 'later') canChange = true;
      else if (next !== undefined) return next;
    }
    return canChange ? 'later' : undefined;
  }

  /** A lease; 'later' when the partition may have one after the next answer or enrolment; undefined when it is finished. */
  #takeFrom(partition: string): Lease | 'later' | undefined {
    const { ledger, tally, run, enrolment } = this.#options;
    const spec = run.partitions.find(({ name }) => name === partition);
    const numbers = tally.of(partition);
    const admission = decideAdmission({
      budget: spec?.budget ?? 0,
      spentTokens: numbers.spentTokens,
      answers: numbers.answers,
      answerTokens: numbers.spentTokens,
      turnsUnderWay: numbers.turnsUnderWay,
      maxTokens: (spec?.ask ?? run).sampling.maxTokens * (1 + (spec?.continuations ?? 0)),
    });
    const onlyBegun = admission !== 'admit';
    const at = this.#ahead.findIndex((lease) => lease.partition === partition && (!onlyBegun || isBegun(lease)));
    if (at >= 0) return this.#ahead.splice(at, 1)[0];
    // Conversations begun in an earlier life are under way, so they are finished whatever the budget says; so are new attempts,
    // which give back the tokens of the records that they replace.
    const leased = ledger.lease(partition, Math.min(LEASE_AHEAD, this.#gate.limit), onlyBegun);
    const [first, ...rest] = leased;
    this.#ahead.push(...rest);
    if (first !== undefined) return first;
    if (admission === 'reached') this.#sayReached(partition, numbers.spentTokens, spec?.budget ?? 0);
    if (admission === 'reached') return undefined;
    if (admission === 'wait') return 'later';
    return enrolment.isOpen(partition) ? 'later' : undefined;
  }

  #sayReached(partition: string, spent: number, budget: number): void {
    if (this.#reached.has(partition)) return;
    this.#reached.add(partition);
    this.#options.emit({ kind: 'partition.budget-reached', subject: partition, facts: { spent, budget } });
  }

  /** Until a conversation ends, a batch is enrolled or the session ends; nothing is awaited between the look and this. */
  #somethingChanged(): Promise<void> {
    if (this.#ending.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** One subscription at a time, however long the run. */
  async #hearEnrolment(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      await this.#options.enrolment.changed();
      this.#wake?.();
    }
  }

  /** Those taken ahead and never begun. Those begun stay with the ledger until the next start: a commit may still name them. */
  #giveLeasesBack(): void {
    try {
      this.#options.ledger.unlease(this.#ahead.splice(0));
    } catch (thrown) {
      this.#stop(thrown);
    }
  }

  #end(): void {
    this.#ending.abort();
    this.#wake?.();
  }

  #giveUp(): void {
    if (this.#givingUp.signal.aborted) return;
    const { tally } = this.#options;
    this.#givenUp = { requests: tally.attemptsInFlight, tokens: tally.estimatedTokensInFlight() };
    this.#givingUp.abort();
    this.#end();
  }

  #stop(thrown: unknown): void {
    this.#stopError ??= asAerieError(thrown);
    this.#giveUp();
  }
}

/** Its tokens are spent already, or those of the record it replaces are. */
function isBegun({ finishedTurns, replaces }: Lease): boolean {
  return finishedTurns.length > 0 || replaces !== undefined;
}

/** Whatever is not an error for the operator is a rule of ours that did not hold. */
function asAerieError(thrown: unknown): AerieError {
  if (thrown instanceof AerieError) return thrown;
  const { code, message, detail } = bug(thrown instanceof Error ? thrown.message : String(thrown));
  return new AerieError(code, message, detail, thrown);
}
