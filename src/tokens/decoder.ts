/**
 * Token ids ↔ text with a model's own tokenizer files. The engine's ids are the truth: this is what `aerie check` compares
 * them with, never what makes them.
 *
 * Promises: special tokens stay in the text, spaces are left as they are, no token is added. An id outside the vocabulary
 * decodes to U+FFFD. Where the configuration holds a chat template, conversations are rendered as a trainer would render them. Ids that end inside a character decode to U+FFFD at the end; `agreesWithText` is the comparison that
 * allows for it.
 * On failure: files that the library cannot read give an `AerieError` (`model.damaged`).
 */
import { Tokenizer } from '@huggingface/tokenizers';
import { AerieError } from '../base/errors.ts';
import { type ChatTemplate, ChatTemplateError, compileChatTemplate } from './chat-template.ts';

export interface Decoder {
  decode(ids: readonly number[]): string;
  encode(text: string): number[];
  /** A control token: engines leave it out of the text of an answer. */
  isSpecial(id: number): boolean;
  /** The texts of the control tokens, longest first. */
  readonly specialTexts: readonly string[];
  /** undefined: there is no chat template, or one that does not parse. It throws `ChatTemplateError` where it refuses. */
  readonly renderChat: RenderChat | undefined;
  /** Ids are below this. */
  readonly vocabularySize: number;
}

/** Messages as transformers gives them to a template → the text of the conversation, the last answer closed. */
export type RenderChat = (
  messages: readonly Readonly<Record<string, unknown>>[],
  kwargs: Readonly<Record<string, unknown>>,
) => string;

export function openDecoder(tokenizerJson: object, tokenizerConfig: object): Decoder {
  const tokenizer = build(tokenizerJson, { ...tokenizerConfig, clean_up_tokenization_spaces: false });
  const special = specialTokens(tokenizerJson);
  const specials = new Set(special.map(({ id }) => id));
  let vocabularySize = 0;
  for (const id of tokenizer.get_vocab().values()) vocabularySize = Math.max(vocabularySize, id + 1);
  return {
    vocabularySize,
    decode(ids) {
      let text = '';
      for (const run of knownRuns(ids, (id) => tokenizer.id_to_token(id) !== undefined)) {
        text +=
          run.length === 0
            ? '\uFFFD'
            : tokenizer.decode(run, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
      }
      return text;
    },
    isSpecial: (id) => specials.has(id),
    specialTexts: special.map(({ content }) => content).sort((a, b) => b.length - a.length),
    renderChat: chatOf(tokenizerConfig as Readonly<Record<string, unknown>>),
    encode(text) {
      return text === '' ? [] : tokenizer.encode(text, { add_special_tokens: false }).ids;
    },
  };
}

function specialTokens(tokenizerJson: object): { id: number; content: string }[] {
  const added: unknown = 'added_tokens' in tokenizerJson ? tokenizerJson.added_tokens : undefined;
  if (!Array.isArray(added)) return [];
  return added
    .filter((token: { special?: unknown } | null) => token?.special === true)
    .map(({ id, content }: { id?: unknown; content?: unknown }) => ({ id: Number(id), content: String(content) }));
}

function chatOf(config: Readonly<Record<string, unknown>>): RenderChat | undefined {
  const source = templateSource(config['chat_template']);
  if (source === undefined) return undefined;
  const tokens = { bosToken: tokenText(config['bos_token']), eosToken: tokenText(config['eos_token']) };
  let template: ChatTemplate;
  try {
    template = compileChatTemplate(source);
  } catch (thrown) {
    if (thrown instanceof ChatTemplateError) return undefined;
    throw thrown;
  }
  return (messages, kwargs) => template({ messages, kwargs, addGenerationPrompt: false, ...tokens });
}

/** Some models have several templates, each with a name. */
export function templateSource(value: unknown, wanted = 'default'): string | undefined {
  if (typeof value === 'string') return value === '' || wanted !== 'default' ? undefined : value;
  if (!Array.isArray(value)) return undefined;
  const named = value.find((template: { name?: unknown } | null) => template?.name === wanted) as
    | { template?: unknown }
    | undefined;
  return typeof named?.template === 'string' ? named.template : undefined;
}

/** A token stands in a configuration as its text, or as an object that has it. */
export function tokenText(value: unknown): string {
  if (typeof value === 'string') return value;
  const content = typeof value === 'object' && value !== null ? (value as { content?: unknown }).content : undefined;
  return typeof content === 'string' ? content : '';
}

/**
 * Is `decoded` the engine's `text`? Equal, or different only in U+FFFD at the very end: an answer cut at its cap can end
 * in half a character, which one side shows as one or more U+FFFD and the other leaves out. U+FFFD anywhere else counts.
 */
export function agreesWithText(decoded: string, text: string): boolean {
  return decoded === text || withoutTrailingReplacement(decoded) === withoutTrailingReplacement(text);
}

function withoutTrailingReplacement(text: string): string {
  return text.replace(/\uFFFD+$/u, '');
}

/** Stretches of ids that have a token; an empty stretch stands for one id that has none (the library would throw or drop it). */
function knownRuns(ids: readonly number[], isKnown: (id: number) => boolean): number[][] {
  const runs: number[][] = [];
  let run: number[] = [];
  for (const id of ids) {
    if (isKnown(id)) {
      run.push(id);
      continue;
    }
    if (run.length > 0) runs.push(run);
    runs.push([]);
    run = [];
  }
  if (run.length > 0) runs.push(run);
  return runs;
}

function build(tokenizerJson: object, config: object): Tokenizer {
  try {
    return new Tokenizer(tokenizerJson, config);
  } catch (thrown) {
    throw new AerieError(
      'model.damaged',
      'The tokenizer files cannot be opened.',
      {
        because: thrown instanceof Error ? thrown.message : String(thrown),
        remedy: 'Put the tokenizer.json and tokenizer_config.json of the model into the run folder, under tokenizer/.',
      },
      thrown,
    );
  }
}
