/** Hash-derived names. Pure; sha256 comes from node:crypto, which does no I/O. */
import { createHash } from 'node:crypto';

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** RFC 4648 base32, lower case, no padding, of the first `characters` × 5 bits. */
export function base32(bytes: Uint8Array, characters: number): string {
  let out = '';
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5 && out.length < characters) {
      bits -= 5;
      out += BASE32[(held >> bits) & 31];
    }
    held &= (1 << bits) - 1;
  }
  return out;
}

export function sha256Hex(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/** First 26 base32 characters (130 bits) of sha256: short enough for a file name, no collision before 10^19 prompts. */
export function contentId(canonicalText: string): string {
  return base32(createHash('sha256').update(canonicalText).digest(), 26);
}

/**
 * A seed below 2^31 (vLLM and SGLang both take a signed 32-bit number) that depends on nothing but its arguments. Each
 * continuation of an answer that was cut has its own, or it would draw what the piece before it drew.
 */
export function turnSeed(runSeed: number, promptId: string, turn: number, attemptSalt = 0, continuation = 0): number {
  const more = continuation === 0 ? '' : `/${continuation}`;
  const digest = createHash('sha256').update(`${runSeed}/${promptId}/${turn}/${attemptSalt}${more}`).digest();
  return digest.readUInt32BE(0) & 0x7fffffff;
}
