/**
 * How long one attempt may take, from what was asked. Pure. Aerie owns the deadline because the HTTP client has none:
 * it is the last guard against a request that is never answered, so it is generous.
 */
import type { TurnRequest } from '../engine/dialect.ts';

export interface Asked {
  readonly maxTokens: number;
  /** Bytes of the messages: at least as many as their tokens. */
  readonly promptBytes: number;
  readonly inFlight: number;
  /** Requests the engine works on at once; 0 = unknown, then no queue is assumed. */
  readonly sequences: number;
}

/**
 * Slower than any engine worth using. An 8-sequence CPU batch gives each request about 8 tokens/s and a prefill of about
 * 25 tokens/s; on two cores shared with five times their load, prompts of 1,500 tokens were seen to take 300 s.
 */
const SLOWEST_DECODE_TOKENS_PER_S = 1;
const SLOWEST_PREFILL_BYTES_PER_S = 5;
/** Of English text, about. */
const BYTES_PER_TOKEN = 4;
/** Connecting, queueing for a scheduler tick, compiling a kernel at first use (minutes for some). */
const SLACK_MS = 300_000;

export function computeDeadlineMs(asked: Asked): number {
  const rounds = asked.sequences > 0 ? Math.ceil(asked.inFlight / asked.sequences) : 1;
  const aloneMs = (asked.maxTokens / SLOWEST_DECODE_TOKENS_PER_S + asked.promptBytes / SLOWEST_PREFILL_BYTES_PER_S) * 1000;
  return SLACK_MS + Math.max(1, rounds) * aloneMs;
}

/** The run file's own limit where it names one. */
export function deadlineOf(
  request: TurnRequest,
  {
    run,
    sequences,
    inFlight,
  }: { readonly run: { readonly attemptTimeoutMs: number }; readonly sequences: number; readonly inFlight: number },
): number {
  if (run.attemptTimeoutMs > 0) return run.attemptTimeoutMs;
  const promptBytes = bytesOf(request);
  return computeDeadlineMs({ maxTokens: request.sampling.maxTokens, promptBytes, inFlight, sequences });
}

function bytesOf({ messages, soFar }: TurnRequest): number {
  if (soFar !== undefined) return soFar.length * BYTES_PER_TOKEN;
  return messages.reduce((sum, { content }) => sum + content.length, 0);
}
