/** `POST /generate` as SGLang answers it: one text or one list of ids, no template. Pure. */
import type { Answer } from './compose-answer.ts';
import { type Ask, asFields, asInteger, parseObject, type Reading, readRid, type Shape } from './shapes.ts';
import { decodeIds, encodeText, isTokenId, STOP_ID } from './tokens.ts';

/** SGLang's default of `max_new_tokens`. */
const DEFAULT_NEW_TOKENS = 128;

const renderError = (_status: number, message: string): object => ({ error: { message } });

export const generateShape: Shape = {
  path: '/generate',
  read(body, { maxModelLen }) {
    const fields = parseObject(body);
    const promptIds = readPromptIds(fields?.['text'], fields?.['input_ids']);
    if (fields === undefined || promptIds === undefined) {
      return {
        input: undefined,
        promptText: '',
        seed: null,
        result: refuse('The lookalike takes one text or one list of input_ids, not a batch.'),
      };
    }
    const sampling = asFields(fields['sampling_params']) ?? {};
    const maxTokens = asInteger(sampling['max_new_tokens'] ?? DEFAULT_NEW_TOKENS);
    return {
      input: fields['text'] ?? fields['input_ids'],
      promptText: typeof fields['text'] === 'string' ? fields['text'] : decodeIds(promptIds),
      seed: asInteger(sampling['sampling_seed']) ?? null,
      result:
        fields['stream'] === true
          ? refuse('The lookalike does not stream.')
          : checkLength(promptIds, maxTokens, maxModelLen, readRid(fields['rid'])),
    };
  },
  render({ id, answer, usage, elapsedMs, retractions }) {
    const length = answer.outputIds.length;
    return {
      text: answer.text,
      output_ids: answer.outputIds,
      meta_info: {
        id,
        finish_reason: finishOf(answer.finish, length),
        prompt_tokens: usage.prompt,
        weight_version: 'default',
        completion_tokens: usage.completion,
        cached_tokens: usage.cached ?? 0,
        ...(retractions === undefined ? {} : { total_retractions: retractions }),
        e2e_latency: elapsedMs / 1000,
      },
    };
  },
  renderWithoutChoices: () => [],
  renderError,
};

function finishOf(finish: Answer['finish'], length: number): object {
  if (finish === 'stop') return { type: 'stop', matched: STOP_ID };
  return finish === 'length'
    ? { type: 'length', length }
    : { type: 'abort', message: 'Aborted', status_code: null, err_type: null };
}

function readPromptIds(text: unknown, ids: unknown): number[] | undefined {
  if (typeof text === 'string') return encodeText(text);
  return Array.isArray(ids) && ids.every(isTokenId) ? ids : undefined;
}

/** The words are SGLang's. */
function checkLength(
  promptIds: readonly number[],
  maxTokens: number | undefined,
  limit: number,
  rid: Pick<Ask, 'rid'>,
): Reading['result'] {
  const input = promptIds.length;
  if (maxTokens === undefined || maxTokens < 1) return refuse('max_new_tokens must be at least 1.');
  if (input >= limit) return refuse(`The input (${input} tokens) is longer than the model's context length (${limit} tokens).`);
  if (input + maxTokens > limit) {
    return refuse(
      `Requested token count exceeds the model's maximum context length of ${limit} tokens. You requested a total of ${input + maxTokens} tokens: ${input} tokens from the input messages and ${maxTokens} tokens for the completion.`,
    );
  }
  return { ask: { promptIds, maxTokens, ...rid } };
}

function refuse(message: string): Reading['result'] {
  return { refusal: { status: 400, body: renderError(400, message) } };
}
