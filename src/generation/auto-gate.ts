/**
 * `in-flight: auto`: how many requests the servers' KV pools hold. Pure.
 *
 *   1.1 × pool ÷ mean live context, for each server, at most what it works on at once; the sum of them, at least 1
 *
 * The live context of a request is its prompt and half of its answer: an answer that grows from 0 to L is L/2 long on average
 * over its life. Final lengths would promise too little: 376,029 tokens of pool and answers of 4,000 make 94 by final lengths, and
 * 134–150 were seen to run. Long answers stay longer, so the true mean lies somewhat above (by the variance of the lengths): then a
 * few requests queue in the engine, which costs nothing, where too few would leave the GPU idle. The tenth on top is for the
 * same reason: a request is on its way, or its reply is, while its place in the pool is free.
 */
import { formatCount } from '../base/units.ts';

const OVER_POOL = 1.1;
/** As for budgets: before that a mean says little (with lognormal lengths of σ ≈ 1 it is off by a quarter). */
export const ANSWERS_BEFORE_MEAN = 30;
/** A mean that has moved by less than this is noise, and each change is an event. */
const MOVED = 0.1;

export interface PoolFacts {
  /** Tokens; 0 = not known. */
  readonly poolTokens: number;
  /** Requests that the server works on at once; 0 = not known. */
  readonly sequences: number;
}

export interface MeanTokens {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export interface AutoInput {
  /** Each one that the run can use. */
  readonly servers: readonly PoolFacts[];
  readonly measured: MeanTokens & { readonly answers: number };
  /** What counts until 30 answers are there. */
  readonly expected: MeanTokens;
  /** For each server that says nothing of its pool. */
  readonly otherwise: number;
  readonly most: number;
}

export function autoLimit(input: AutoInput): number {
  const context = liveContext(believedMeans(input));
  const limits = input.servers.map(({ poolTokens, sequences }) => {
    const wanted = poolTokens > 0 ? (OVER_POOL * poolTokens) / context : input.otherwise;
    return sequences > 0 ? Math.min(wanted, sequences) : wanted;
  });
  const sum = limits.reduce((all, limit) => all + limit, 0);
  return Math.max(1, Math.min(input.most, Math.floor(sum)));
}

function believedMeans({ measured, expected }: AutoInput): MeanTokens {
  return measured.answers < ANSWERS_BEFORE_MEAN ? expected : measured;
}

function liveContext({ promptTokens, outputTokens }: MeanTokens): number {
  return Math.max(1, promptTokens + outputTokens / 2);
}

export interface GateChange {
  readonly limit: number;
  readonly because: string;
}

/** Follows pools and means, and says when the gate is to change: with the servers, with the 30th answer, and when the context has moved. */
export class AutoGate {
  #basis: { readonly servers: string; readonly context: number } | undefined;

  /** undefined: as it is. */
  follow(input: AutoInput): GateChange | undefined {
    if (input.servers.length === 0) return undefined;
    const basis = { servers: JSON.stringify(input.servers), context: liveContext(believedMeans(input)) };
    const before = this.#basis;
    const hasMoved = before === undefined || Math.abs(basis.context - before.context) > MOVED * before.context;
    if (!hasMoved && before.servers === basis.servers) return undefined;
    this.#basis = basis;
    return { limit: autoLimit(input), because: becauseOf(input) };
  }
}

function becauseOf(input: AutoInput): string {
  const pool = input.servers.reduce((sum, { poolTokens }) => sum + poolTokens, 0);
  if (pool === 0) return 'no server says what its KV pool holds';
  const { promptTokens, outputTokens } = believedMeans(input);
  const how = input.measured.answers < ANSWERS_BEFORE_MEAN ? 'expected' : `of ${formatCount(input.measured.answers)} answers`;
  const lengths = `a prompt of ${whole(promptTokens)} and half of an answer of ${whole(outputTokens)}, ${how}`;
  return `${formatCount(pool)} tokens of KV pool and ${whole(promptTokens + outputTokens / 2)} of live context (${lengths})`;
}

function whole(tokens: number): string {
  return formatCount(Math.round(tokens));
}
