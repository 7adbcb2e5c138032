/** `POST /v1/completions` as vLLM answers it under `return_token_ids`: one text or one list of ids, no template. Pure. */
import { renderUsage } from './chat-shape.ts';
import { asInteger, type Fields, parseObject, type Reading, renderVllmError, type Shape } from './shapes.ts';
import { decodeIds, encodeText, isTokenId } from './tokens.ts';

/** vLLM's default of `max_tokens` on this path, which is OpenAI's. */
const DEFAULT_TOKENS = 16;

export const completionShape: Shape = {
  path: '/v1/completions',
  read(body, { servedModelName, maxModelLen }) {
    const fields = parseObject(body);
    const prompt = fields?.['prompt'];
    const promptIds = typeof prompt === 'string' ? encodeText(prompt) : prompt;
    if (fields === undefined || !Array.isArray(promptIds) || promptIds.length === 0 || !promptIds.every(isTokenId)) {
      const result = refuse(400, "'prompt' must be one text or one list of ids of this vocabulary.");
      return { input: undefined, promptText: '', seed: null, result };
    }
    const asked = { input: prompt, promptText: decodeIds(promptIds), seed: asInteger(fields['seed']) ?? null };
    const { model } = fields;
    if (typeof model === 'string' && model !== servedModelName)
      return { ...asked, result: refuse(404, `The model \`${model}\` does not exist.`) };
    return { ...asked, result: readAsk(fields, promptIds, maxModelLen) };
  },
  render({ id, model, createdAt, promptIds, answer, usage, ids }) {
    return {
      ...renderHead(id, model, createdAt),
      choices: [
        {
          ...{ index: 0, text: answer.text, logprobs: null, finish_reason: answer.finish, stop_reason: null },
          ...(ids === 'sglang-choice' ? { prompt_token_ids: promptIds, response_token_ids: answer.outputIds } : {}),
          ...(ids === 'choice' ? { token_ids: answer.outputIds, prompt_token_ids: promptIds } : {}),
          prompt_logprobs: null,
        },
      ],
      usage: renderUsage(usage),
    };
  },
  renderWithoutChoices: ({ id, model, createdAt, usage }) => ({
    ...renderHead(id, model, createdAt),
    choices: [],
    usage: renderUsage({ ...usage, completion: 0 }),
  }),
  renderError: renderVllmError,
};

function readAsk(fields: Fields, promptIds: readonly number[], limit: number): Reading['result'] {
  if (fields['stream'] === true) return refuse(400, 'The lookalike does not stream.');
  const maxTokens = asInteger(fields['max_tokens'] ?? DEFAULT_TOKENS);
  if (maxTokens === undefined || maxTokens < 1) return refuse(400, 'max_tokens must be at least 1.');
  const input = promptIds.length;
  if (input + maxTokens <= limit) return { ask: { promptIds, maxTokens, tokenIds: fields['return_token_ids'] === true } };
  return refuse(
    400,
    `'max_tokens' or 'max_completion_tokens' is too large: ${maxTokens}. This model's maximum context length is ${limit} tokens and your request has ${input} input tokens (${maxTokens} > ${limit} - ${input}).`,
  );
}

function refuse(status: number, message: string): Reading['result'] {
  return { refusal: { status, body: renderVllmError(status, message) } };
}

function renderHead(id: string, model: string, createdAt: number): object {
  return { id: `cmpl-${id}`, object: 'text_completion', created: Math.floor(createdAt / 1000), model };
}
