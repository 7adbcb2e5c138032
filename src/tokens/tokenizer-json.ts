/**
 * A GGUF vocabulary → `tokenizer.json` and `tokenizer_config.json` in Hugging Face's format, so that a run served by the
 * embedded engine has a tokenizer that trainers and `aerie check` can open. Pure.
 *
 * Promises: every id keeps its token; control tokens are special; nothing is normalised, because llama.cpp does not
 * normalise and the engine's ids are the truth. Decoding is right for every byte-level vocabulary. Encoding is right where
 * the splitting rule (`pre`) is known; for others a note says that it is GPT-2's. One known difference: JavaScript counts
 * U+FEFF as white space and U+0085 not, llama.cpp the other way round, so text with these may be split elsewhere.
 * On failure: a vocabulary that is not byte-level BPE gives `undefined` (the run then has no decoder).
 */

/** What the embedded engine says at `GET /tokenizer`: the GGUF's own fields. */
export interface GgufVocabulary {
  /** `tokenizer.ggml.model`; only `gpt2` (byte-level BPE) can be converted. */
  readonly model: string;
  /** `tokenizer.ggml.pre`: the name of the rule that splits text before merges. */
  readonly pre: string;
  readonly tokens: readonly string[];
  readonly token_types: readonly number[];
  /** `left right`, best first. */
  readonly merges: readonly string[];
  readonly chat_template: string;
  readonly bos_token_id: number;
  readonly eos_token_id: number;
  readonly add_bos: boolean;
}

export interface TokenizerFiles {
  /** For `tokenizer.json`. */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  /** For `tokenizer_config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Sentences for people about what may differ from the engine. */
  readonly notes: readonly string[];
}

/** Values of `tokenizer.ggml.token_type` (llama.cpp, llama_token_type). */
const TOKEN_TYPE = { unknown: 2, control: 3, userDefined: 4 } as const;

/** Splits on the regex with the match kept as a piece of its own. */
const isolate = (regex: string) => ({ type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated', invert: false });
/** Bytes to printable characters; `use_regex` adds GPT-2's own splitting rule. */
const byteLevel = (useRegex: boolean) => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: false,
  use_regex: useRegex,
});
const QWEN2_REGEX =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/**
 * `\p{N}` isolated is what Hugging Face's Digits(individual) does (Rust's is_numeric); its JavaScript port takes ASCII
 * digits only, so the rule is written as a Split that both read alike.
 */
const PRE_TOKENIZERS: Readonly<Record<string, readonly object[]>> = {
  smollm: [isolate('\\p{N}'), byteLevel(true)],
  qwen2: [isolate(QWEN2_REGEX), byteLevel(false)],
  'gpt-2': [byteLevel(true)],
};

export function renderTokenizerFiles(vocabulary: GgufVocabulary): TokenizerFiles | undefined {
  if (vocabulary.model !== 'gpt2') return undefined;
  const known = PRE_TOKENIZERS[vocabulary.pre];
  const bos = vocabulary.tokens[vocabulary.bos_token_id];
  const eos = vocabulary.tokens[vocabulary.eos_token_id];
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: addedTokens(vocabulary),
    normalizer: null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: known ?? [byteLevel(true)] },
    post_processor: vocabulary.add_bos && bos !== undefined ? startWith(bos, vocabulary.bos_token_id) : null,
    decoder: byteLevel(true),
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      // fromEntries, not assignment: a token named `__proto__` must be a key like any other
      vocab: Object.fromEntries(vocabulary.tokens.map((token, id) => [token, id])),
      merges: vocabulary.merges,
    },
  };
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    clean_up_tokenization_spaces: false, // true would join ` .` into `.`: a decode that is not the engine's text
    add_prefix_space: false,
    add_bos_token: vocabulary.add_bos,
    ...(bos === undefined ? {} : { bos_token: bos }),
    ...(eos === undefined ? {} : { eos_token: eos, pad_token: eos }),
    model_max_length: 1_000_000, // the engine's context is what limits; a small number here only makes loaders warn
    ...(vocabulary.chat_template === '' ? {} : { chat_template: vocabulary.chat_template }),
  };
  const notes =
    known === undefined
      ? [
          `The splitting rule '${vocabulary.pre}' is not known here; GPT-2's is written. Decoding is right, encoding may differ from the engine.`,
        ]
      : [];
  return { tokenizer, config, notes };
}

/** Control tokens are special; user-defined ones are matched whole in text but are ordinary text when decoded. */
function addedTokens(vocabulary: GgufVocabulary): object[] {
  const added: object[] = [];
  vocabulary.tokens.forEach((content, id) => {
    const type = vocabulary.token_types[id];
    const special = type === TOKEN_TYPE.control || type === TOKEN_TYPE.unknown;
    if (!special && type !== TOKEN_TYPE.userDefined) return;
    added.push({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special });
  });
  return added;
}

function startWith(token: string, id: number): object {
  return {
    type: 'TemplateProcessing',
    single: [{ SpecialToken: { id: token, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
    pair: [
      { SpecialToken: { id: token, type_id: 0 } },
      { Sequence: { id: 'A', type_id: 0 } },
      { Sequence: { id: 'B', type_id: 1 } },
    ],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  };
}
