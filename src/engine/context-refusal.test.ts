/** The sentences by which engines refuse what is longer than their context, as they are said in the field. */
import { expect, test } from 'vitest';
import { outcomeOfStatus } from './chat-completion.ts';
import { judgeLengths } from './context-refusal.ts';

const say = (message: string, more: object = {}) => JSON.stringify({ error: { message, type: 'BadRequestError', ...more } });
const flat = (message: string) => JSON.stringify({ object: 'error', message, type: 'BadRequestError', param: null, code: 400 });
const refuse = (body: string, asked: object = {}) =>
  outcomeOfStatus({ status: 400, body, retryAfterMs: 0 }, { prompt: 0, answer: 1000, context: 4096, ...asked });

const LONGER = '5,000 tokens of prompt in a context of 4,096';
const ROOM = '3,500 tokens of prompt and max-tokens 1,000 in a context of 4,096; max-tokens 595 has room';
const V = "This model's maximum context length is 4096 tokens.";

test.each([
  // vLLM, oldest to newest
  [
    say(`${V} However, you requested 6000 tokens (5000 in the messages, 1000 in the completion). Please reduce the length.`),
    LONGER,
  ],
  [
    say(`${V} However, you requested 4500 tokens (3500 in the messages, 1000 in the completion). Please reduce the length.`),
    ROOM,
  ],
  [flat(`${V} However, you requested 5000 tokens in the messages, Please reduce the length of the messages.`), LONGER],
  [say(`${V} However, your request has 5000 input tokens. Please reduce the length of the input messages.`), LONGER],
  [
    say(
      `'max_tokens' or 'max_completion_tokens' is too large: 1000. ${V.slice(0, -1)} and your request has 3500 input tokens (1000 > 4096 - 3500).`,
    ),
    ROOM,
  ],
  [
    say(
      "You passed 3500 input tokens and requested 1000 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 3096 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=3500)",
    ),
    ROOM,
  ],
  [
    say(
      `${V} However, you requested 1000 output tokens and your prompt contains at least 3500 input tokens, for a total of at least 4500 tokens. Please reduce the length of the input prompt or the number of requested output tokens.`,
    ),
    ROOM,
  ],
  [
    say(`${V} However, you requested 0 output tokens and your prompt contains at least 5000 input tokens, for a total of 5000.`),
    LONGER,
  ],
  [say("this model's maximum context length is 4096 tokens, but the prompt contains 5000 input tokens"), LONGER],
  [
    say('The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that it is no smaller.'),
    LONGER,
  ],
  // SGLang
  [flat("The input (5000 tokens) is longer than the model's context length (4096 tokens)."), LONGER],
  [
    flat(
      "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 4500 tokens: 3500 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    ),
    ROOM,
  ],
  [
    say(
      'Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens). Use a shorter input or enable --allow-auto-truncate.',
    ),
    LONGER,
  ],
  // OpenAI, OpenRouter, llama.cpp, Anthropic's wording behind proxies
  [say(`${V} However, your messages resulted in 5000 tokens. Please reduce the length of the messages.`), LONGER],
  [
    say(
      "This endpoint's maximum context length is 4096 tokens. However, you requested about 4500 tokens (3500 of text input, 1000 in the output).",
    ),
    ROOM,
  ],
  [say('request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it'), LONGER],
  [say('prompt is too long: 5000 tokens > 4096 maximum'), LONGER],
])('%s', (body, because) => {
  const reason = because === LONGER ? 'longer-than-context' : 'no-room-for-answer';
  expect(refuse(body)).toMatchObject({ kind: 'refused', status: 400, reason });
  expect(refuse(body)).toMatchObject({ because: expect.stringContaining(because) });
});

test('OpenAI’s code tells where its sentence has no number, and then no number is invented', () => {
  for (const body of [
    say('Your input exceeds the context window of this model. Please adjust your input and try again.'),
    say('too much', { code: 'context_length_exceeded' }),
    say('the request exceeds the available context size. try increasing the context size or enable context shift', {
      type: 'exceed_context_size_error',
    }),
  ]) {
    const outcome = refuse(body, { context: 0 });
    expect(outcome).toMatchObject({ reason: 'longer-than-context' });
    if ('because' in outcome) expect(outcome.because).not.toMatch(/tokens of/);
  }
});

test('a cap that no prompt would fit under is told apart: it is no fault of a prompt', () => {
  for (const body of [
    say('max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.'),
    say(
      `'max_tokens' or 'max_completion_tokens' is too large: 8192. ${V.slice(0, -1)} and your request has 35 input tokens (8192 > 4096 - 35).`,
    ),
    say('max_tokens=8192cannot be greater than max_model_len=max_total_tokens=4096. Please request fewer output tokens.'),
  ])
    expect(refuse(body, { answer: 8192 })).toMatchObject({ reason: 'max-tokens-too-large' });
});

test('other refusals have no reason, whatever numbers they hold', () => {
  for (const message of [
    'temperature must be at most 2, got 4096',
    'Invalid request (5000 tokens)',
    'the input (5000 characters) is no text',
    'top_k must be in the context of sampling',
  ])
    expect(refuse(say(message))).not.toHaveProperty('reason');
});

test('lengths are judged as the engines judge them', () => {
  const judge = (prompt: number, answer: number) => judgeLengths({ prompt, answer, context: 100 }).reason;
  expect([judge(100, 1), judge(99, 1), judge(99, 2), judge(1, 100)]).toEqual([
    'longer-than-context',
    'no-room-for-answer',
    'no-room-for-answer',
    'max-tokens-too-large',
  ]);
});
