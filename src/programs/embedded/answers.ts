/**
 * The generating endpoints: a parsed body → the reply's JSON. Chat speaks vLLM's `return_token_ids` shape with the fields of
 * SGLang's choices beside it, completions vLLM's, generate SGLang's.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { type Generation, type GenerationRequest, generate } from './generate.ts';
import type { LoadedModel } from './model.ts';
import { admit, refuseHopelessLength, refuseUnknownIds, tokenizeChat, tokenizeText } from './prompt.ts';
import { type ChatBody, type CompletionBody, type GenerateBody, Refusal } from './wire.ts';

/** SGLang's own default for `max_new_tokens`. */
const DEFAULT_NEW_TOKENS = 128;
/** vLLM's default of `max_tokens` for completions, which is OpenAI's. */
const DEFAULT_COMPLETION_TOKENS = 16;

export async function answerChat(model: LoadedModel, body: ChatBody, nowMs: number, signal: AbortSignal) {
  refuseOtherModel(model, body.model);
  refuseHopelessLength(model, countCharacters(body.messages));
  const promptIds = tokenizeChat(model, {
    messages: body.messages,
    kwargs: body.chat_template_kwargs ?? {},
    addGenerationPrompt: body.add_generation_prompt ?? true,
  });
  const asked = body.max_completion_tokens ?? body.max_tokens ?? undefined;
  const generation = await generate(
    model,
    requestOf(promptIds, admit(model.flags.contextTokens, promptIds.length, asked), { ...body, seed: body.seed }),
    signal,
  );
  const withIds = body.return_token_ids === true;
  return {
    id: `chatcmpl-${randomUUID()}`,
    object: 'chat.completion',
    created: Math.floor(nowMs / 1000),
    model: model.flags.servedModelName,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: generation.text, reasoning_content: null, tool_calls: [] },
        logprobs: null,
        ...vllmFinish(generation),
        matched_stop: sglangFinish(generation).matched ?? null,
        token_ids: withIds ? generation.outputIds : null,
        prompt_token_ids: withIds ? promptIds : null,
      },
    ],
    usage: vllmUsage(promptIds, generation),
    prompt_token_ids: withIds ? promptIds : null,
  };
}

export async function answerCompletion(model: LoadedModel, body: CompletionBody, nowMs: number, signal: AbortSignal) {
  refuseOtherModel(model, body.model);
  const { prompt } = body;
  const promptIds = promptOf(model, typeof prompt === 'string' ? { text: prompt } : { input_ids: prompt });
  const maxTokens = admit(model.flags.contextTokens, promptIds.length, body.max_tokens ?? DEFAULT_COMPLETION_TOKENS);
  const generation = await generate(model, requestOf(promptIds, maxTokens, { ...body, seed: body.seed }), signal);
  const withIds = body.return_token_ids === true;
  return {
    id: `cmpl-${randomUUID()}`,
    object: 'text_completion',
    created: Math.floor(nowMs / 1000),
    model: model.flags.servedModelName,
    choices: [
      {
        index: 0,
        text: generation.text,
        logprobs: null,
        ...vllmFinish(generation),
        token_ids: withIds ? generation.outputIds : null,
        prompt_token_ids: withIds ? promptIds : null,
        prompt_logprobs: null,
      },
    ],
    usage: vllmUsage(promptIds, generation),
  };
}

export async function answerGenerate(model: LoadedModel, body: GenerateBody, signal: AbortSignal) {
  const promptIds = promptOf(model, body);
  const params = body.sampling_params ?? {};
  const maxTokens = admit(model.flags.contextTokens, promptIds.length, params.max_new_tokens ?? DEFAULT_NEW_TOKENS);
  const generation = await generate(model, requestOf(promptIds, maxTokens, { ...params, seed: params.sampling_seed }), signal);
  return {
    text: generation.text,
    output_ids: generation.outputIds,
    meta_info: {
      id: randomUUID().replaceAll('-', ''),
      finish_reason: sglangFinish(generation),
      prompt_tokens: promptIds.length,
      completion_tokens: generation.outputIds.length,
      cached_tokens: generation.cachedTokens,
    },
  };
}

export function refuseOtherModel(model: LoadedModel, name: string | null | undefined): void {
  if (name !== undefined && name !== null && name !== model.flags.servedModelName) {
    throw new Refusal(404, `The model \`${name}\` does not exist; this server has \`${model.flags.servedModelName}\`.`);
  }
}

function countCharacters(messages: readonly { readonly content: string }[]): number {
  return messages.reduce((sum, message) => sum + message.content.length, 0);
}

function promptOf(model: LoadedModel, body: Pick<GenerateBody, 'text' | 'input_ids'>): readonly number[] {
  const { text, input_ids: ids } = body;
  if (ids !== undefined && ids !== null && (text === undefined || text === null)) {
    refuseUnknownIds(model, ids);
    return ids;
  }
  if (typeof text !== 'string' || (ids !== undefined && ids !== null)) throw new Refusal(400, 'Give either text or input_ids');
  refuseHopelessLength(model, text.length);
  return tokenizeText(model, text, true);
}

/** The fields both shapes share; absent ones get the engines' own defaults. */
interface SamplingFields {
  readonly temperature?: number | null | undefined;
  readonly top_p?: number | null | undefined;
  readonly top_k?: number | null | undefined;
  readonly min_p?: number | null | undefined;
  readonly seed?: number | null | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly ignore_eos?: boolean | null | undefined;
}

function requestOf(promptIds: readonly number[], maxTokens: number, fields: SamplingFields): GenerationRequest {
  return {
    promptIds,
    maxTokens,
    temperature: fields.temperature ?? 1,
    topP: fields.top_p ?? 1,
    topK: Math.max(0, fields.top_k ?? 0), // -1 is how both engines spell "off"
    minP: fields.min_p ?? 0,
    seed: fields.seed ?? randomInt(0x7fff_ffff),
    stop: fields.stop ?? [],
    ignoreEos: fields.ignore_eos ?? false,
  };
}

function vllmFinish({ finish }: Generation) {
  return {
    finish_reason: finish.kind === 'length' ? 'length' : 'stop',
    stop_reason: finish.kind === 'string' ? finish.text : null,
  };
}

function vllmUsage(promptIds: readonly number[], { outputIds, cachedTokens }: Generation) {
  return {
    prompt_tokens: promptIds.length,
    completion_tokens: outputIds.length,
    total_tokens: promptIds.length + outputIds.length,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

function sglangFinish({ finish, outputIds }: Generation): { type: string; length?: number; matched?: number | string } {
  if (finish.kind === 'length') return { type: 'length', length: outputIds.length };
  return { type: 'stop', matched: finish.kind === 'end' ? finish.id : finish.text };
}
