/**
 * The bodies that requests may have, and the shape of a refusal. Every body is untrusted: what does not fit ends in a
 * `Refusal`, which becomes a reply in vLLM's error shape. Fields that would change the answer and that this engine cannot
 * honour are refused, never ignored.
 */
import { z } from 'zod';

/** Why a request is refused; `status` is the HTTP status. */
export class Refusal extends Error {
  readonly status: 400 | 404 | 413 | 503;
  readonly type: string;

  constructor(status: 400 | 404 | 413 | 503, message: string) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.type = { 400: 'BadRequestError', 404: 'NotFoundError', 413: 'RequestTooLargeError', 503: 'ServiceUnavailableError' }[
      status
    ];
  }
}

/** vLLM's error body. */
export function errorBody(message: string, type: string, code: number) {
  return { error: { message, type, param: null, code } };
}

const text = z.string();
const positive = z.int().min(1);
const tokenIds = z.array(z.int().min(0));

const content = z.union([
  text,
  z.null().transform(() => ''),
  z.array(z.looseObject({ type: z.literal('text'), text })).transform((parts) => parts.map((part) => part.text).join('')),
]);

const messages = z.array(z.looseObject({ role: z.enum(['system', 'user', 'assistant', 'tool']), content })).min(1);
const templateKwargs = z.record(z.string(), z.unknown()).nullish();
const stop = z
  .union([text.min(1).transform((one) => [one]), z.array(text.min(1)).max(64), z.null().transform(() => [])]) // 64: each token is searched for each of them
  .optional();

/** A seed as the sampler takes it; the largest 32-bit number means "random" to llama.cpp and is left out. */
const seed = z.int().min(0).max(0xffff_fffe).nullish();
const temperature = z.number().min(0).max(100).nullish();
const topP = z.number().gt(0).max(1).nullish();
const topK = z.int().min(-1).nullish();
const minP = z.number().min(0).max(1).nullish();

/** A field this engine has only one value of. */
const only = <const T extends string | number | boolean>(value: T, why: string) =>
  z.literal(value, { error: `${why}; leave it out` }).nullish();

/** Fields of vLLM and SGLang that change the answer and that this engine does not have. */
const absent = z.null({ error: 'this engine does not have it; leave it out' }).optional();
const absentFields = {
  logit_bias: absent,
  stop_token_ids: absent,
  min_tokens: absent,
  min_new_tokens: absent,
  response_format: absent,
  structured_outputs: absent,
  guided_json: absent,
  guided_regex: absent,
  json_schema: absent,
  regex: absent,
  ebnf: absent,
};

const chatFields = {
  stream: only(false, 'this engine does not stream'),
  n: only(1, 'this engine gives one answer per request'),
  logprobs: only(false, 'this engine does not give log-probabilities'),
  repetition_penalty: only(1, 'this engine has no penalties'),
  frequency_penalty: only(0, 'this engine has no penalties'),
  presence_penalty: only(0, 'this engine has no penalties'),
  tools: z.array(z.unknown()).max(0, 'this engine has no tools; leave it out').nullish(),
};

const chatBody = z.looseObject({
  ...absentFields,
  ...chatFields,
  model: text.nullish(),
  messages,
  max_tokens: positive.nullish(),
  max_completion_tokens: positive.nullish(),
  temperature,
  top_p: topP,
  top_k: topK,
  min_p: minP,
  seed,
  stop,
  ignore_eos: z.boolean().nullish(),
  chat_template_kwargs: templateKwargs,
  add_generation_prompt: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
});
export type ChatBody = z.infer<typeof chatBody>;

/** vLLM's completions: one text or one list of ids, which no template touches. */
const completionBody = z.looseObject({
  ...absentFields,
  ...chatFields,
  model: text.nullish(),
  prompt: z.union([text, tokenIds.min(1)], { error: 'one text or one list of token ids' }),
  logprobs: z.null({ error: 'this engine does not give log-probabilities; leave it out' }).optional(),
  echo: only(false, 'this engine gives the answer alone'),
  max_tokens: positive.nullish(),
  temperature,
  top_p: topP,
  top_k: topK,
  min_p: minP,
  seed,
  stop,
  ignore_eos: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
});
export type CompletionBody = z.infer<typeof completionBody>;

const samplingParams = z.looseObject({
  ...absentFields,
  n: chatFields.n,
  repetition_penalty: chatFields.repetition_penalty,
  frequency_penalty: chatFields.frequency_penalty,
  presence_penalty: chatFields.presence_penalty,
  max_new_tokens: positive.nullish(),
  temperature,
  top_p: topP,
  top_k: topK,
  min_p: minP,
  sampling_seed: seed,
  stop,
  ignore_eos: z.boolean().nullish(),
});

const generateBody = z.looseObject({
  stream: chatFields.stream,
  return_logprob: chatFields.logprobs,
  text: text.nullish(),
  input_ids: tokenIds.min(1).nullish(),
  sampling_params: samplingParams.nullish(),
});
export type GenerateBody = z.infer<typeof generateBody>;

const tokenizeBody = z.looseObject({
  model: text.nullish(),
  prompt: text.nullish(),
  messages: messages.nullish(),
  add_special_tokens: z.boolean().nullish(),
  add_generation_prompt: z.boolean().nullish(),
  chat_template_kwargs: templateKwargs,
});
export type TokenizeBody = z.infer<typeof tokenizeBody>;

const detokenizeBody = z.looseObject({ model: text.nullish(), tokens: tokenIds });

export const BODIES = {
  chat: chatBody,
  completion: completionBody,
  generate: generateBody,
  tokenize: tokenizeBody,
  detokenize: detokenizeBody,
};

/** The text of a body → a value of this shape, or a `Refusal` that names every field that does not fit. */
export function parseBody<T>(shape: z.ZodType<T>, body: string): T {
  const parsed = shape.safeParse(parseJson(body));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.slice(0, 5).map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`); // 5: enough to act on
  throw new Refusal(400, problems.join('; '));
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new Refusal(400, `The body (${body.length} characters) is not JSON`);
  }
}
