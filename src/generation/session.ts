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
import { AerieError } from '../base/errors.ts';
import type { Happening } from '../base/events.ts';
import { parsePromptLine } from '../dataset/prompt-id.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Clock, Random } from '../host/host.ts';
import type { Ledger, Lease } from '../ledger/ledger.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { LineReader } from '../shard/line-reader.ts';
import type { Provenance } from '../shard/record.ts';
import type { RunSpec } from '../spec/run.ts';
import { decideAdmission } from './budget.ts';
import type { Committer } from './committer.ts';
import { converse } from './converse.ts';
import { Gate } from './gate.ts';
import type { Tally } from './tally.ts';

export interface SessionOptions {
  readonly run: RunSpec;
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
  | { readonly kind: 'aborted'; readonly conversations: number; readonly tokens: number }
  | { readonly kind: 'stopped'; readonly error: AerieError };

/** Leases taken at once: enough that the loop never waits for SQLite, few enough to give back quickly. */
const LEASE_AHEAD = 64;

export async function runSession(options: SessionOptions): Promise<SessionEnd> {
  const session = new Session(options);
  return await session.run();
}

class Session {
  readonly #options: SessionOptions;
  readonly #gate: Gate;
  readonly #suspects = new Gate(1);
  /** Ends new work: the operator's drain, or a stop of our own. */
  readonly #ending = new AbortController();
  readonly #givingUp = new AbortController();
  #stopError: AerieError | undefined;
  readonly #ahead: Lease[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly #reached = new Set<string>();
  #wake: (() => void) | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#gate = options.gate;
  }

  async run(): Promise<SessionEnd> {
    const { drain, abort, clock, committer, tally } = this.#options;
    const onDrain = () => this.#end();
    const onAbort = () => this.#giveUp();
    drain.addEventListener('abort', onDrain, { once: true });
    abort.addEventListener('abort', onAbort, { once: true });
    if (drain.aborted) onDrain();
    if (abort.aborted) onAbort();
    const ramp = this.#gate.ramp(clock, this.#ending.signal);
    try {
      await this.#admitPrompts();
      if (this.#ending.signal.aborted) this.#giveLeasesBack();
      await Promise.all(this.#underWay);
    } catch (thrown) {
      this.#stop(thrown as AerieError);
    }
    const conversations = this.#givingUp.signal.aborted ? this.#underWay.size : 0;
    const tokens = this.#givingUp.signal.aborted ? tally.estimatedTokensInFlight() : 0;
    await Promise.all(this.#underWay);
    this.#end();
    await ramp;
    drain.removeEventListener('abort', onDrain);
    abort.removeEventListener('abort', onAbort);
    await committer.close().catch((thrown: unknown) => {
      this.#stopError ??= thrown as AerieError;
    });
    if (this.#stopError !== undefined) return { kind: 'stopped', error: this.#stopError };
    if (abort.aborted) return { kind: 'aborted', conversations, tokens };
    return { kind: drain.aborted ? 'drained' : 'finished' };
  }

  /** The main loop: a slot, a prompt, a conversation. */
  async #admitPrompts(): Promise<void> {
    const { committer } = this.#options;
    while (!this.#ending.signal.aborted) {
      await this.#gate.enter(false);
      await committer.room();
      const lease = await this.#nextLease();
      if (lease === undefined) {
        this.#gate.leave();
        return;
      }
      this.#begin(lease);
    }
  }

  #begin(lease: Lease): void {
    const { tally } = this.#options;
    tally.began(lease.partition, lease.turns - lease.finishedTurns.length);
    const conversation = this.#converse(lease)
      .catch((thrown: unknown) => this.#stop(thrown as AerieError))
      .finally(() => {
        this.#underWay.delete(conversation);
        this.#wake?.();
      });
    this.#underWay.add(conversation);
  }

  async #converse(lease: Lease): Promise<void> {
    const line = await this.#options.prompts(lease.partition).read(lease.offset, lease.bytes);
    await converse(lease, parsePromptLine(line), {
      ...this.#options,
      gate: this.#gate,
      suspects: this.#suspects,
      drain: this.#ending.signal,
      abort: this.#givingUp.signal,
      stop: (error) => this.#stop(typeof error === 'string' ? rejects(error) : error),
      templateKwargs: this.#options.run.templateKwargs,
    });
  }

  /** The next prompt to begin, waiting for enrolment or for answers where that can help. undefined: nothing left, or ending. */
  async #nextLease(): Promise<Lease | undefined> {
    for (;;) {
      if (this.#ending.signal.aborted || this.#options.committer.failure !== undefined) return undefined;
      let canChange = false;
      for (const { name } of this.#options.run.partitions) {
        const next = this.#takeFrom(name);
        if (next === 'later') canChange = true;
        else if (next !== undefined) return next;
      }
      if (!canChange) return undefined;
      await this.#somethingChanged();
    }
  }

  /** A lease; 'later' when the partition may have one after the next answer or enrolment; undefined when it is finished. */
  #takeFrom(partition: string): Lease | 'later' | undefined {
    const { ledger, tally, run, enrolment, emit } = this.#options;
    const spec = run.partitions.find(({ name }) => name === partition);
    const numbers = tally.of(partition);
    const admission = decideAdmission({
      budget: spec?.budget ?? 0,
      spentTokens: numbers.spentTokens,
      answers: numbers.answers,
      answerTokens: numbers.spentTokens,
      turnsUnderWay: numbers.turnsUnderWay,
      maxTokens: run.sampling.maxTokens,
    });
    const onlyBegun = admission !== 'admit';
    const at = this.#ahead.findIndex((lease) => lease.partition === partition && (!onlyBegun || lease.finishedTurns.length > 0));
    if (at >= 0) return this.#ahead.splice(at, 1)[0];
    // Conversations begun in an earlier life are under way, so they are finished whatever the budget says.
    const leased = ledger.lease(partition, Math.min(LEASE_AHEAD, this.#gate.limit), onlyBegun);
    const [first, ...rest] = leased;
    this.#ahead.push(...rest);
    if (first !== undefined) return first;
    if (admission === 'reached' && !this.#reached.has(partition)) {
      this.#reached.add(partition);
      emit({
        kind: 'partition.budget-reached',
        subject: partition,
        facts: { spent: numbers.spentTokens, budget: spec?.budget ?? 0 },
      });
    }
    if (admission === 'reached') return undefined;
    if (admission === 'wait') return 'later';
    return enrolment.isOpen(partition) ? 'later' : undefined;
  }

  async #somethingChanged(): Promise<void> {
    await Promise.race([
      this.#options.enrolment.changed(),
      new Promise<void>((resolve) => {
        this.#wake = resolve;
      }),
    ]);
  }

  #giveLeasesBack(): void {
    this.#options.ledger.unlease(this.#ahead.splice(0));
  }

  #end(): void {
    this.#ending.abort();
    this.#wake?.();
  }

  #giveUp(): void {
    this.#givingUp.abort();
    this.#end();
  }

  #stop(error: AerieError): void {
    this.#stopError ??= error;
    this.#giveUp();
  }
}

function rejects(because: string): AerieError {
  return new AerieError('server.rejects', `The server does not do what is asked of it: ${because}.`, {
    remedy:
      'What is committed is safe. Correct the server, its key or the run file, then run the same command again: it resumes.',
  });
}
