/**
 * A turn that has no room in the context: told from what a server says when it refuses, or from a count of tokens.
 *
 * Sentences of vLLM 0.6 to its newest, SGLang, OpenAI, llama.cpp and the embedded engine, as their sources and their users'
 * reports have them. They differ in every version, so each number is looked for by the words around it. Pure.
 */
import { formatCount } from '../base/units.ts';
import type { RefusedReason } from './dialect.ts';
import { looseObject, parseLoose } from './loose-json.ts';

/** In tokens; 0 = not known. */
export interface Lengths {
  readonly prompt: number;
  /** Most tokens of the answer, as asked. */
  readonly answer: number;
  /** Of prompt and answer together. */
  readonly context: number;
}

export interface ContextRefusal {
  readonly reason: Exclude<RefusedReason, 'answer-withheld'>;
  /** The numbers in a sentence; '' where none are known. */
  readonly because: string;
}

/** A sentence is short; what comes behind is no sentence, and no time is spent on it. */
const MOST_READ = 2_000;

/** Any of them, in small letters, and it is about the context. OpenAI's code stands in the body beside its sentence. */
const MARKS = [
  'context_length_exceeded', // OpenAI's code
  'exceed_context_size', // llama.cpp's type
  'maximum context length', // OpenAI, vLLM, SGLang
  "the model's context length", // vLLM and SGLang
  'context window',
  'exceeds the maximum allowed length', // SGLang, where its pool is smaller than its context
  'maximum model length', // vLLM's engine
  'available context size', // llama.cpp
  'prompt is too long',
  'cannot be greater than max_model_len', // vLLM
] as const;

const CONTEXT =
  /(?:context length is(?: only)?|context length of|context length \(|allowed length \(|model length of|context size \(|max_model_len=(?:max_total_tokens=)?) ?(\d{1,12})/;
const PROMPT = [
  /(?:request has|prompt contains|you passed|resulted in)(?: at least)? (\d{1,12}) (?:input )?tokens/,
  /(?:the input|request|(?<!context )length) \(?(\d{1,12})(?: tokens)?\)/,
  /\((\d{1,12}) (?:in the messages|in your prompt|of text input)/,
  /: (\d{1,12}) tokens from the input messages/,
  /requested (\d{1,12}) tokens in the messages/,
  /too long: (\d{1,12}) tokens/,
] as const;
const ANSWER = [
  /(?:requested|and) (\d{1,12}) (?:output tokens|tokens for the completion)/,
  /(\d{1,12}) (?:in|for) the (?:completion|output)/,
  /too large: (\d{1,12})/,
] as const;
/** OpenAI: each model has a cap for its answers, whatever the prompt. */
const ANSWER_CAP = /supports at most (\d{1,12}) completion tokens/;

/** undefined: the refusal is about something else. `asked` fills in what the server does not say. */
export function readContextRefusal(sentence: string, body: string, asked: Lengths): ContextRefusal | undefined {
  const text = sentence.slice(0, MOST_READ).toLowerCase();
  const cap = numberIn(text, ANSWER_CAP);
  if (cap > 0)
    return { reason: 'max-tokens-too-large', because: `the server gives answers of at most ${formatCount(cap)} tokens` };
  const { code, type } = looseObject(parseLoose(body)['error']);
  if (!MARKS.some((mark) => text.includes(mark) || code === mark || (typeof type === 'string' && type.startsWith(mark))))
    return undefined;
  return judgeLengths({
    prompt: firstIn(text, PROMPT) || asked.prompt,
    answer: firstIn(text, ANSWER) || asked.answer,
    context: numberIn(text, CONTEXT) || asked.context,
  });
}

/** What is wrong with these lengths, of which something is. */
export function judgeLengths({ prompt, answer, context }: Lengths): ContextRefusal {
  const [prompted, wanted, whole] = [prompt, answer, context].map(formatCount);
  if (context > 0 && answer >= context) {
    return {
      reason: 'max-tokens-too-large',
      because: `max-tokens ${wanted} leaves no room for a prompt in a context of ${whole} tokens`,
    };
  }
  if (prompt === 0 || context === 0) return { reason: 'longer-than-context', because: '' };
  if (prompt >= context)
    return { reason: 'longer-than-context', because: `${prompted} tokens of prompt in a context of ${whole}` };
  return {
    reason: 'no-room-for-answer',
    // One less than what is left: SGLang wants a token to spare.
    because: `${prompted} tokens of prompt and max-tokens ${wanted} in a context of ${whole}; max-tokens ${formatCount(Math.max(0, context - prompt - 1))} has room`,
  };
}

function firstIn(text: string, patterns: readonly RegExp[]): number {
  for (const pattern of patterns) {
    const found = numberIn(text, pattern);
    if (found > 0) return found;
  }
  return 0;
}

function numberIn(text: string, pattern: RegExp): number {
  return Number(pattern.exec(text)?.[1] ?? 0);
}
