/**
 * The request shapes the lookalike answers, chats and completions as vLLM and `/generate` as SGLang: body → what is asked, answer → reply.
 * Pure. A body that cannot be answered becomes a refusal, in the error shape of the engine whose path it is.
 */
import type { Answer } from './compose-answer.ts';
import type { Scenario } from './scenario.ts';
import type { Settings } from './settings.ts';

export interface Refusal {
  readonly status: number;
  readonly body: object;
}

/** What one generation request asks for. */
export interface Ask {
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  /** Asked for as SGLang 0.5.13 has it: `return_prompt_token_ids`, and `return_meta_info` with `logprobs`. */
  readonly metaInfo?: boolean;
  /** `return_token_ids`. */
  readonly tokenIds?: boolean;
  /** The client's own name for the request. */
  readonly rid?: string;
  /** Tools are offered, so calls in the answer are parsed. */
  readonly hasTools?: boolean;
}

export interface Reading {
  /** What the journal hashes; undefined = the body could not be read, and its raw text is hashed. */
  readonly input: unknown;
  /** What the `contains` of a fault looks at. */
  readonly promptText: string;
  /** What `lastContains` looks at: the last message, or the whole prompt where there are none. Left out: the whole. */
  readonly lastText?: string;
  readonly seed: number | null;
  readonly result: { readonly ask: Ask } | { readonly refusal: Refusal };
}

/** What a reply says about itself; usage is apart from the ids so that a fault can make them disagree. */
export interface ReplyParts {
  readonly id: string;
  readonly model: string;
  readonly createdAt: number;
  readonly promptIds: readonly number[];
  readonly answer: Answer;
  /** `cached` undefined: the engine was not told to say it. */
  readonly usage: { readonly prompt: number; readonly completion: number; readonly cached: number | undefined };
  readonly elapsedMs: number;
  /** Where a chat has its ids: vLLM's way, SGLang's two ways, or nowhere. */
  readonly ids: 'choice' | 'sglang-choice' | 'meta-info' | 'none';
  /** How often it was sent back to the queue; undefined: the version does not say. */
  readonly retractions?: number;
  /** A chat has its reasoning apart. */
  readonly splitsReasoning: boolean;
  readonly hasTools: boolean;
}

export interface Shape {
  readonly path: '/v1/chat/completions' | '/v1/completions' | '/generate';
  read(body: string, settings: Settings, scenario: Scenario): Reading;
  render(parts: ReplyParts): object;
  /** A 200 that holds no answer at all. */
  renderWithoutChoices(parts: ReplyParts): object;
  renderError(status: number, message: string): object;
}

export type Fields = Readonly<Record<string, unknown>>;

/** A JSON object, or undefined for anything else. */
export function parseObject(body: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return asFields(value);
  } catch {
    return undefined;
  }
}

export function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

export function asInteger(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
}

export function readRid(value: unknown): Pick<Ask, 'rid'> {
  return typeof value === 'string' && value !== '' ? { rid: value } : {};
}

/** vLLM's error shape; `type` is the name of the status. */
export function renderVllmError(status: number, message: string): object {
  const type = { 400: 'BadRequestError', 404: 'NotFoundError', 429: 'RateLimitError' }[status] ?? 'InternalServerError';
  return { error: { message, type, param: null, code: status } };
}
