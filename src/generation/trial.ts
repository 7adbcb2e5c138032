/**
 * The trial question: a plain question of a few tokens, asked when a prompt is in trouble and its server has answered
 * nothing else since. Answered: the server serves others, so the next failure is the prompt's own. Not answered: the
 * server is to blame, and the prompt keeps its place. It is no prompt of the run: nothing of it is recorded.
 * However many conversations are in trouble, a server has one trial question in flight; so trouble makes no storm.
 */
import type { Outcome, TurnRequest } from '../engine/dialect.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Clock } from '../host/host.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { RunSpec } from '../spec/run.ts';
import { deadlineOf } from './deadline.ts';
import { readArrival, sendTurn } from './send-attempt.ts';

const QUESTION = 'Say yes.';
/** Enough for "Yes." and a stop id; an answer that is cut is an answer too. */
const MOST_TOKENS = 8;

export interface TrialOptions {
  readonly run: RunSpec;
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

export class Trials {
  readonly #options: TrialOptions;
  readonly #underWay = new Map<Endpoint, Promise<Outcome>>();

  constructor(options: TrialOptions) {
    this.#options = options;
  }

  ask(endpoint: Endpoint): Promise<Outcome> {
    const already = this.#underWay.get(endpoint);
    if (already !== undefined) return already;
    const trial = this.#ask(endpoint).finally(() => this.#underWay.delete(endpoint));
    this.#underWay.set(endpoint, trial);
    return trial;
  }

  async #ask(endpoint: Endpoint): Promise<Outcome> {
    const { run, fleet, clock, abort } = this.#options;
    const request: TurnRequest = {
      model: endpoint.facts.model === '' ? run.model : endpoint.facts.model,
      messages: [{ role: 'user', content: QUESTION }],
      tools: [],
      sampling: { ...run.sampling, maxTokens: MOST_TOKENS },
      seed: run.sampling.seed,
      templateKwargs: run.templateKwargs,
      extraBody: run.extraBody,
    };
    const deadlineMs = deadlineOf(request, { run, sequences: endpoint.facts.sequences, inFlight: run.inFlight });
    const sending = fleet.sent(endpoint);
    const outcome = readArrival(await sendTurn(endpoint, request, { deadlineMs, abort, clock }), endpoint, request);
    fleet.ended(sending, '(trial)', outcome);
    return outcome;
  }
}
