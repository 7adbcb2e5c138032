/**
 * How an engine refuses what is longer than its context, in the words and at the bounds of each. Pure.
 *
 *   vllm-older  before 0.10     prompt ≥ context; prompt + max_tokens > context: one sentence for both
 *   vllm        0.11            the same bounds, two sentences
 *   vllm-newer  from 0.16 on    counts no further than what would have fitted and one more: "at least"
 *   sglang                      prompt ≥ context; prompt + max_tokens ≥ context: it wants a token to spare
 *   openai                      without numbers, with a code
 */
import type { Scenario } from './scenario.ts';
import { type Refusal, renderVllmError } from './shapes.ts';

export interface AskedLengths {
  readonly input: number;
  readonly maxTokens: number;
  readonly limit: number;
}

/** undefined: it fits. */
export function refuseLength(words: Scenario['refusals'], lengths: AskedLengths): Refusal | undefined {
  const { input, maxTokens, limit } = lengths;
  const isTooLong = input >= limit;
  const spare = words === 'sglang' ? 1 : 0;
  if (!isTooLong && input + maxTokens + spare <= limit) return undefined;
  const message = SENTENCES[words](lengths, isTooLong);
  if (words === 'sglang')
    return { status: 400, body: { object: 'error', message, type: 'BadRequestError', param: null, code: 400 } };
  if (words !== 'openai') return { status: 400, body: renderVllmError(400, message) };
  const error = { message, type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' };
  return { status: 400, body: { error } };
}

const SENTENCES: Readonly<Record<Scenario['refusals'], (lengths: AskedLengths, isTooLong: boolean) => string>> = {
  'vllm-older': ({ input, maxTokens, limit }) =>
    `This model's maximum context length is ${limit} tokens. However, you requested ${input + maxTokens} tokens (${input} in the messages, ${maxTokens} in the completion). Please reduce the length of the messages or completion.`,
  vllm: ({ input, maxTokens, limit }, isTooLong) =>
    isTooLong
      ? `This model's maximum context length is ${limit} tokens. However, your request has ${input} input tokens. Please reduce the length of the input messages.`
      : `'max_tokens' or 'max_completion_tokens' is too large: ${maxTokens}. This model's maximum context length is ${limit} tokens and your request has ${input} input tokens (${maxTokens} > ${limit} - ${input}).`,
  'vllm-newer': ({ input, maxTokens, limit }) => {
    const seen = Math.min(input, Math.max(0, limit - maxTokens) + 1);
    return `This model's maximum context length is ${limit} tokens. However, you requested ${maxTokens} output tokens and your prompt contains at least ${seen} input tokens, for a total of at least ${seen + maxTokens} tokens. Please reduce the length of the input prompt or the number of requested output tokens.`;
  },
  sglang: ({ input, maxTokens, limit }, isTooLong) =>
    isTooLong
      ? `The input (${input} tokens) is longer than the model's context length (${limit} tokens).`
      : `Requested token count exceeds the model's maximum context length of ${limit} tokens. You requested a total of ${input + maxTokens} tokens: ${input} tokens from the input messages and ${maxTokens} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.`,
  openai: () => 'Your input exceeds the context window of this model. Please adjust your input and try again.',
};
