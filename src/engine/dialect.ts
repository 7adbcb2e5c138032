/**
 * What Aerie knows about one kind of engine. Pure: text in, values out; all I/O is in `server/` and `generation/`.
 */
import type { ContextReason } from '../base/aside-reason.ts';
import type { Message, ToolCall } from '../base/conversation.ts';
import type { FoundTemplate, Rendered } from '../base/prompt-template.ts';
import type { Sampling } from '../base/sampling.ts';
import type { EngineCounters } from './counters.ts';
import type { Launching } from './launching.ts';
import type { PromptKind, RenderedPrompt } from './rendered-prompt.ts';

export const ENGINES = ['embedded', 'vllm', 'sglang', 'openai'] as const;
export type EngineName = (typeof ENGINES)[number];

/** One HTTP request below the server's base URL. */
export interface EngineRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
}

/** A request for facts. `isOptional`: a server that has no such path, or keeps it to others, is used all the same. */
export interface FactRequest extends EngineRequest {
  readonly isOptional: boolean;
}

export interface TurnRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  /** Tool definitions as JSON texts. */
  readonly tools: readonly string[];
  readonly sampling: Sampling;
  /** This turn's own seed, below 2^31. */
  readonly seed: number;
  /** Sent as `chat_template_kwargs`; empty for none. */
  readonly templateKwargs: Readonly<Record<string, unknown>>;
  /** Merged into the body last: any field the engine knows. */
  readonly extraBody: Readonly<Record<string, unknown>>;
  /** An answer that was cut goes on after these ids, prompt and answer so far; then `messages` are not sent. */
  readonly soFar?: readonly number[];
  /** The prompt as it was rendered here and tokenised there; then `messages` are not sent. */
  readonly prompt?: RenderedPrompt;
}

export type PreparedRequest = TurnRequest & Required<Pick<TurnRequest, 'prompt'>>;

/**
 * Turns whose prompt is rendered here, tokenised by the server, and sent as ids: two requests for a turn. For servers that
 * give no ids otherwise.
 */
export interface RenderedTurns {
  /** Whether this version is asked so. */
  isNeeded(facts: ServerFacts): boolean;
  /** '' = it can be asked so; else why not, and it is asked as a chat. */
  whyNot(prompt: PromptKind, facts: ServerFacts): string;
  renderPrompt(turn: TurnRequest, facts: ServerFacts, template: FoundTemplate): Rendered;
  tokenize(text: string, model: string): EngineRequest;
  /** undefined: not what was expected. */
  readTokens(reply: FactReply, facts: ServerFacts): readonly number[] | undefined;
  render(turn: PreparedRequest): EngineRequest;
  read(reply: TurnReply, facts: ServerFacts, turn: PreparedRequest): Outcome;
}

export type MoreRequest = TurnRequest & Required<Pick<TurnRequest, 'soFar'>>;

/** How an answer that was cut at its cap goes on: by ids, past the chat template. The reply holds what was added. */
export interface Continuation {
  render(turn: MoreRequest): EngineRequest;
  read(reply: TurnReply, facts: ServerFacts, turn: MoreRequest): Outcome;
}

export interface Reply {
  readonly promptIds: readonly number[];
  readonly outputIds: readonly number[];
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: 'stop' | 'length' | 'tool-calls';
  readonly endsWithStopId: boolean;
  readonly usage: { readonly prompt: number; readonly completion: number; readonly cached: number };
}

/**
 * What a refusal is about, where that is known: the prompt or its answer has no room in the context, no prompt would have
 * (then the run file or the server is wrong, and no prompt), or the endpoint keeps the answer to itself.
 */
export type RefusedReason = ContextReason | 'max-tokens-too-large' | 'answer-withheld';

/**
 * How one attempt ended. Values, never exceptions.
 * - `completed`: an answer, verified; `finish: length` inside it means truncated.
 * - `refused`: this request can never succeed as it is (400: too long, bad field); `reason` where its words tell.
 * - `overloaded`: the server said later (408, 409, 425, 429, 503).
 * - `failed`: the server answered 5xx; it may be this prompt, it may be the server.
 * - `lost`: no answer (refused or reset connection, deadline, engine death); says nothing about the prompt alone.
 * - `malformed`: an answer that contradicts itself (counts, ids, not JSON).
 * - `unauthorised`: 401, 403, 404, 405: the key, the path or the model name is wrong; every request will end so.
 * - `abandoned`: Aerie itself gave it up (second Ctrl-C, SIGTERM).
 */
export type Outcome =
  | { readonly kind: 'completed'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly status: number; readonly because: string; readonly reason?: RefusedReason }
  | { readonly kind: 'failed' | 'malformed' | 'unauthorised'; readonly status: number; readonly because: string }
  | { readonly kind: 'overloaded'; readonly status: number; readonly because: string; readonly retryAfterMs: number }
  | { readonly kind: 'lost'; readonly because: string; readonly deadline: boolean }
  | { readonly kind: 'abandoned' };
export type OutcomeKind = Outcome['kind'];

/** What a server says about itself once it is ready. */
export interface ServerFacts {
  readonly model: string;
  readonly revision: string;
  readonly engineVersion: string;
  readonly weights: string;
  readonly kvCacheDtype: string;
  readonly templateHash: string;
  /** Most tokens of prompt + answer for one request; 0 = unknown. */
  readonly contextTokens: number;
  /** Ids are below this; 0 = unknown. */
  readonly vocabularySize: number;
  /** Ids that end an answer; empty = unknown. */
  readonly stopIds: readonly number[];
  /** Requests the engine works on at once; 0 = unknown. */
  readonly sequences: number;
  /** Tokens that the KV cache holds; 0 = unknown. */
  readonly poolTokens: number;
  /** Bytes of the KV cache for each token, as one rank has measured them; 0 = unknown. Tells the type where its name does not. */
  readonly kvBytesPerToken: number;
  /** What it takes reasoning and tool calls out of an answer by, as the engine calls it; '' = nothing, or not told. */
  readonly reasoningParser: string;
  readonly toolCallParser: string;
}

export const UNKNOWN_FACTS: ServerFacts = {
  model: '',
  revision: '',
  engineVersion: '',
  weights: 'unknown',
  kvCacheDtype: 'unknown',
  templateHash: '',
  contextTokens: 0,
  vocabularySize: 0,
  stopIds: [],
  sequences: 0,
  poolTokens: 0,
  kvBytesPerToken: 0,
  reasoningParser: '',
  toolCallParser: '',
};

export interface TurnReply {
  readonly status: number;
  readonly body: string;
  /** `body` is only the beginning. */
  readonly isCut?: boolean;
  /** From `Retry-After`, 0 when absent. */
  readonly retryAfterMs: number;
}

/**
 * Whether replies hold token ids: `always` (a reply without them is malformed), `never` (text only), or `unknown`, where
 * nothing tells the version: they are asked for, and what comes is judged reply by reply.
 */
export type IdsPromise = 'always' | 'never' | 'unknown';

/** What the engine and its version promise; a record is exact only where its turns have ids as well. */
export interface Exactness {
  readonly exact: boolean;
  /** How the ids are had, or that there are none. */
  readonly how: string;
  /** Why a record is not exact; '' where it is. */
  readonly because: string;
}

export interface FactReply {
  readonly status: number;
  readonly body: string;
}

/** How an engine's counters are had. */
export interface MetricsReading {
  readonly request: EngineRequest;
  /** undefined: this server has none (404), or not one figure in them is known. */
  parse(reply: FactReply): EngineCounters | undefined;
}

export interface Dialect {
  readonly name: EngineName;
  /** Requests whose replies, in this order, are given to `parseFacts`. */
  readonly factRequests: readonly FactRequest[];
  /** `model`: the run file's name for it, where a server lists several. */
  parseFacts(replies: readonly FactReply[], model: string): ServerFacts;
  readonly healthRequest: EngineRequest;
  /** Only the status code counts: a 200 with an empty body is ready. */
  isReady(status: number): boolean;
  renderTurn(turn: TurnRequest, facts: ServerFacts): EngineRequest;
  /** Any reply to a turn → an outcome; counts and ids are verified against each other, against `facts` and the cap asked for. */
  readReply(reply: TurnReply, facts: ServerFacts, maxTokens: number): Outcome;
  /** undefined: the engine takes no ids. */
  readonly continuation: Continuation | undefined;
  /** Asks how many tokens the prompt of a turn has, rendered as the turn would be. Left out: this engine cannot say. */
  readonly countTokens?: {
    render(turn: TurnRequest): EngineRequest;
    /** undefined where the server does not answer as expected. */
    read(reply: FactReply): number | undefined;
  };
  renderDetokenize(ids: readonly number[]): EngineRequest;
  /** The text of the ids, or undefined where the server does not answer as expected. */
  readDetokenize(reply: FactReply): string | undefined;
  /** Left out: Aerie never starts such a server with a command. */
  readonly launching?: Launching;
  /** Left out: such a server has no counters. */
  readonly metrics?: MetricsReading;
  /** Left out: none of its versions is asked so. */
  readonly renderedTurns?: RenderedTurns;
  /** `prompt`: what is known of the prompts; left out: nothing, so none can be rendered here. */
  exactness(facts: ServerFacts, prompt?: PromptKind): Exactness;
}
