/**
 * Token ids → text, exactly. Pure.
 *
 * All ids of an answer are turned into bytes first and the bytes are decoded once, because a character may span tokens.
 * Control tokens have no text (like `skip_special_tokens`), and nothing is tidied: llama.cpp's own detokenizer removes
 * the space before punctuation for some vocabularies, and then text and ids would no longer agree. Bytes that are no
 * UTF-8 become U+FFFD, as in every engine.
 */

export interface Decoder {
  /** The bytes one token stands for; empty for control tokens. */
  bytesOf(id: number): Uint8Array;
  textOf(ids: readonly number[]): string;
}

/** Token types of GGUF that matter here. */
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;

const NOTHING = new Uint8Array(0);

/** For vocabularies of byte-level BPE (`tokenizer.ggml.model` = gpt2). */
export function byteLevelDecoder(tokens: readonly string[], types: readonly number[]): Decoder {
  const byteOfCharacter = new Map<string, number>(byteAlphabet().map((character, byte) => [character, byte]));
  return decoderOf((id) => {
    const token = tokens[id];
    const type = types[id];
    if (token === undefined || type === CONTROL || type === UNKNOWN) return NOTHING;
    if (type === USER_DEFINED) return Buffer.from(token, 'utf8');
    const bytes: number[] = [];
    for (const character of token) {
      const byte = byteOfCharacter.get(character);
      if (byte === undefined) return Buffer.from(token, 'utf8'); // not written in the alphabet: it stands for itself
      bytes.push(byte);
    }
    return Uint8Array.from(bytes);
  });
}

/** For other vocabularies: llama.cpp's own text, of all ids at once. */
export function nativeDecoder(detokenize: (ids: readonly number[]) => string): Decoder {
  return { ...decoderOf((id) => Buffer.from(detokenize([id]), 'utf8')), textOf: (ids) => detokenize(ids) };
}

function decoderOf(computeBytes: (id: number) => Uint8Array): Decoder {
  const known = new Map<number, Uint8Array>();
  const bytesOf = (id: number): Uint8Array => {
    const held = known.get(id);
    if (held !== undefined) return held;
    const bytes = computeBytes(id);
    known.set(id, bytes);
    return bytes;
  };
  // ignoreBOM: a byte order mark in an answer is text like any other
  const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
  return { bytesOf, textOf: (ids) => utf8.decode(Buffer.concat(ids.map(bytesOf))) };
}

/** GPT-2's 256 characters: printable bytes stand for themselves, the others for U+0100 onwards. */
export function byteAlphabet(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCharCode(isPrintable ? byte : next++);
  });
}
