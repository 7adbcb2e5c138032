/**
 * Token ids ↔ text with a model's own tokenizer files. The engine's ids are the truth: this is what `aerie check` compares
 * them with, never what makes them.
 *
 * Promises: special tokens stay in the text, spaces are left as they are, no token is added. An id outside the vocabulary
 * decodes to U+FFFD. Ids that end inside a character decode to U+FFFD at the end; `agreesWithText` is the comparison that
 * allows for it.
 * On failure: files that the library cannot read give an `AerieError` (`model.damaged`).
 */
import { Tokenizer } from '@huggingface/tokenizers';
import { AerieError } from '../base/errors.ts';

export interface Decoder {
  decode(ids: readonly number[]): string;
  encode(text: string): number[];
  /** A control token: engines leave it out of the text of an answer. */
  isSpecial(id: number): boolean;
  /** Ids are below this. */
  readonly vocabularySize: number;
}

export function openDecoder(tokenizerJson: object, tokenizerConfig: object): Decoder {
  const tokenizer = build(tokenizerJson, { ...tokenizerConfig, clean_up_tokenization_spaces: false });
  const specials = new Set(specialIds(tokenizerJson));
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
    encode(text) {
      return text === '' ? [] : tokenizer.encode(text, { add_special_tokens: false }).ids;
    },
  };
}

function specialIds(tokenizerJson: object): number[] {
  const added: unknown = 'added_tokens' in tokenizerJson ? tokenizerJson.added_tokens : undefined;
  if (!Array.isArray(added)) return [];
  return added.filter(({ special }: { special?: unknown }) => special === true).map(({ id }: { id?: unknown }) => Number(id));
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
