import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { agreesWithText, openDecoder } from './decoder.ts';
import { type GgufVocabulary, renderTokenizerFiles } from './tokenizer-json.ts';

/** GPT-2's printable stand-ins for the 256 bytes: the vocabulary every byte-level model begins with. */
function byteAlphabet(): string[] {
  let spare = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
    return String.fromCodePoint(isPrintable ? byte : spare++);
  });
}

const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
const WORDS = ['he', 'll', 'hell', 'hello', '__proto__', '12', '<custom>'];
const tokens = [...SPECIAL, ...byteAlphabet(), ...WORDS];
const vocabulary: GgufVocabulary = {
  model: 'gpt2',
  pre: 'smollm',
  tokens,
  token_types: tokens.map((token) => (SPECIAL.includes(token) ? 3 : token === '<custom>' ? 4 : 1)),
  merges: ['h e', 'l l', 'he ll', 'hell o', '1 2'],
  chat_template: '{{ messages }}',
  bos_token_id: 1,
  eos_token_id: 2,
  add_bos: false,
};
const idOf = (token: string) => tokens.indexOf(token);

function open(change: Partial<GgufVocabulary> = {}) {
  const files = renderTokenizerFiles({ ...vocabulary, ...change });
  if (files === undefined) throw new Error('a gpt2 vocabulary was given');
  return openDecoder(files.tokenizer, files.config);
}

describe('tokenizer files from a GGUF vocabulary', () => {
  it('open, and know every token', () => {
    expect(open().vocabularySize).toBe(tokens.length);
    expect(open().encode('hello')).toEqual([idOf('hello')]);
    expect(open().decode([idOf('__proto__'), idOf('hello')])).toBe('__proto__hello');
  });

  it('survive being written and read as JSON', () => {
    const files = JSON.parse(JSON.stringify(renderTokenizerFiles(vocabulary)));
    const decoder = openDecoder(files.tokenizer, files.config);
    expect(decoder.decode(decoder.encode('hello __proto__ é'))).toBe('hello __proto__ é');
    expect(files.config).toMatchObject({
      clean_up_tokenization_spaces: false,
      eos_token: '<|im_end|>',
      chat_template: '{{ messages }}',
    });
  });

  it('take special tokens whole, in text and in ids, and never add or drop one', () => {
    const ids = open().encode('<|im_start|>hello<custom><|im_end|>');
    expect(ids).toEqual([1, idOf('hello'), idOf('<custom>'), 2]);
    expect(open().decode(ids)).toBe('<|im_start|>hello<custom><|im_end|>');
    expect(open({ add_bos: true }).encode('hello')).toEqual([idOf('hello')]);
  });

  it('split digits as smollm does, other scripts too, and as gpt-2 does not', () => {
    expect(open().encode('12')).toEqual([idOf('1'), idOf('2')]);
    expect(open({ pre: 'qwen2' }).encode('12')).toEqual([idOf('1'), idOf('2')]);
    expect(open({ pre: 'gpt-2' }).encode('12')).toEqual([idOf('12')]);
  });

  it('say when the splitting rule is not known, and give nothing for another kind of vocabulary', () => {
    expect(renderTokenizerFiles({ ...vocabulary, pre: 'tekken' })?.notes).toHaveLength(1);
    expect(renderTokenizerFiles(vocabulary)?.notes).toEqual([]);
    expect(renderTokenizerFiles({ ...vocabulary, model: 'llama' })).toBeUndefined();
  });
});

describe('decoder', () => {
  const decoder = open();

  it('gives every text back, spaces before full stops included', () => {
    const text = fc.string({ unit: 'grapheme' });
    fc.assert(fc.property(text, (some) => decoder.decode(decoder.encode(some)) === some));
    expect(decoder.decode(decoder.encode("a . b , c 'm"))).toBe("a . b , c 'm");
  });

  it('shows U+FFFD for half a character and for an id without a token, and nothing for nothing', () => {
    const cut = decoder.encode('hello 😀').slice(0, -1);
    expect(decoder.decode(cut)).toMatch(/^hello \uFFFD+$/u);
    expect(decoder.decode([idOf('hello'), 9_999, idOf('he')])).toBe('hello\uFFFDhe');
    expect(decoder.decode([])).toBe('');
    expect(decoder.encode('')).toEqual([]);
  });

  it('agrees with a text that differs in U+FFFD at the very end only', () => {
    expect(agreesWithText('a\uFFFD', 'a')).toBe(true);
    expect(agreesWithText('a', 'a\uFFFD\uFFFD')).toBe(true);
    expect(agreesWithText('a\uFFFDb', 'ab')).toBe(false);
    expect(agreesWithText('a', 'b')).toBe(false);
  });

  it('says what to do about files that cannot be opened', () => {
    expect(() => openDecoder({}, {})).toThrowError(expect.objectContaining({ code: 'model.damaged' }));
  });
});
