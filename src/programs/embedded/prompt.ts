/**
 * Messages or text → prompt ids, and whether they fit the context. Pure but for the model's tokenizer.
 */
import { ChatTemplateError } from '../../tokens/chat-template.ts';
import type { LoadedModel } from './model.ts';
import { Refusal } from './wire.ts';

export interface ChatPrompt {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly addGenerationPrompt: boolean;
}

/**
 * The rendered conversation is tokenised as one text with special tokens recognised, so a user who writes `<|im_end|>`
 * gets the control token. vLLM and SGLang do exactly that, and an embedded run must give the ids that they would give:
 * fidelity is worth more here than a guard that the real engines do not have. A row with such text is found by the
 * special-token check of the finished records.
 */
export function tokenizeChat(model: LoadedModel, chat: ChatPrompt): number[] {
  if (model.template === undefined)
    throw new Refusal(400, 'This model file has no chat template; use /generate with text or input_ids');
  const { tokens, bosId, eosId } = model.vocabulary;
  try {
    return tokenizeText(
      model,
      model.template({
        ...chat,
        bosToken: bosId === null ? '' : (tokens[bosId] ?? ''),
        eosToken: eosId === null ? '' : (tokens[eosId] ?? ''),
      }),
      false, // a template writes the beginning token itself where the model wants one
    );
  } catch (thrown) {
    if (thrown instanceof ChatTemplateError) throw new Refusal(400, thrown.message);
    throw thrown;
  }
}

/** `withBos`: put the beginning token first where the model wants one, as for plain text. */
export function tokenizeText(model: LoadedModel, text: string, withBos: boolean): number[] {
  // Unpaired surrogates are no Unicode text; made U+FFFD here so that both sides of the tokenizer see the same.
  const ids = model.tokenize(Buffer.from(text, 'utf8').toString('utf8'));
  const { addBos, bosId } = model.vocabulary;
  return withBos && addBos && bosId !== null && ids[0] !== bosId ? [bosId, ...ids] : ids;
}

/** Refuses a text that is too long whatever its tokens are, so that megabytes are never tokenised only to be refused. */
export function refuseHopelessLength(model: LoadedModel, characters: number): void {
  const least = Math.ceil(characters / model.vocabulary.longestTokenBytes);
  if (least > model.flags.contextTokens) {
    throw new Refusal(
      400,
      `This model's maximum context length is ${model.flags.contextTokens} tokens. However, your request has at least ${least} input tokens (${characters} characters). Please reduce the length of the input.`,
    );
  }
}

export function refuseUnknownIds(model: LoadedModel, ids: readonly number[]): void {
  const size = model.vocabulary.tokens.length;
  const wrong = ids.find((id) => id >= size);
  if (wrong !== undefined) throw new Refusal(400, `Token id ${wrong} is out of vocabulary: ids are below ${size}`);
}

/** How many tokens the answer may have. `asked` undefined: all that is left (vLLM's default). */
export function admit(contextTokens: number, promptTokens: number, asked: number | undefined): number {
  if (promptTokens === 0) throw new Refusal(400, 'The prompt is empty: it has 0 tokens');
  const total = promptTokens + (asked ?? 1);
  if (total <= contextTokens) return asked ?? contextTokens - promptTokens;
  throw new Refusal(
    400,
    asked === undefined
      ? `This model's maximum context length is ${contextTokens} tokens. However, your request has ${promptTokens} input tokens, which leaves no room for an answer. Please reduce the length of the input messages.`
      : `This model's maximum context length is ${contextTokens} tokens. However, you requested ${total} tokens (${promptTokens} in the messages, ${asked} in the completion). Please reduce the length of the messages or completion.`,
  );
}
