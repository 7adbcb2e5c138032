/**
 * Which texts nearly say what an earlier one said? MinHash over stretches of five words, looked up in bands (LSH).
 *
 * Promises: deterministic, no randomness; the first of a group is kept and only the later ones are found, compared with the
 * kept ones alone, so that leaving out what is found leaves nothing to find. Texts that share 90 % of their stretches
 * are found in all but a few of 10,000 cases, texts that share less than half practically never; the line is at 80 %, give
 * or take 5 (one standard deviation of 64 samples). Memory: 64 bytes of signature and about 130 of table for each text that
 * is kept, 0.2 GB for a million.
 */
import { hashStretches, hashWord, mix, wordsOf } from './words.ts';

/** Five words in a row are seldom the same by chance, and one changed word touches only five stretches. */
export const STRETCH_WORDS = 5;
const BANDS = 16;
/** 16 bands of 4: a pair that shares 80 % meets in a band in 99.98 % of cases, one that shares 30 % in 12 %. */
const ROWS = 4;
const SIZE = BANDS * ROWS;
/** Of 64 samples: 80 %. */
const LEAST_EQUAL = 52;
/** A preface that thousands share fills a band: after this many texts in it, their other bands must tell them apart. */
const MOST_IN_BAND = 8;

/** Odd multipliers and offsets, drawn once and for all by mixing 1, 2, 3 …: any fixed choice will do. */
const MULTIPLIERS = Uint32Array.from({ length: SIZE }, (_, at) => mix(2 * at + 1) | 1);
const OFFSETS = Uint32Array.from({ length: SIZE }, (_, at) => mix(2 * at + 2));

export interface NearDuplicates {
  /** true: nearly an earlier text. false: it is kept, and later ones are compared with it. A text without words is neither. */
  isRepeated(text: string): boolean;
}

/** One byte for each of 64 samples of the text's stretches: the share of equal bytes estimates the share of stretches. */
export function signatureOf(text: string): Uint8Array | undefined {
  const stretches = hashStretches(
    wordsOf(text).map((word) => hashWord(word)),
    STRETCH_WORDS,
  );
  if (stretches.length === 0) return undefined;
  const least = new Uint32Array(SIZE).fill(0xffffffff);
  for (const stretch of stretches) {
    for (let at = 0; at < SIZE; at += 1) {
      const value = (Math.imul(MULTIPLIERS[at] ?? 1, stretch) + (OFFSETS[at] ?? 0)) >>> 0;
      if (value < (least[at] ?? 0)) least[at] = value;
    }
  }
  return Uint8Array.from(least, (value) => mix(value) & 0xff);
}

export function openNearDuplicates(): NearDuplicates {
  let signatures = new Uint8Array(SIZE * 1024);
  let kept = 0;
  /** Open addressing: text * BANDS + band + 1, 0 = free. At most half full. */
  let table = new Uint32Array(BANDS * 2048);

  const slotOf = (signature: Uint8Array, from: number, band: number) => {
    let hash = band;
    for (let row = 0; row < ROWS; row += 1) hash = mix(Math.imul(hash, 257) + (signature[from + band * ROWS + row] ?? 0));
    return hash & (table.length - 1);
  };
  /** The kept texts in this band of the signature, and the free slot behind them. */
  const lookUp = (signature: Uint8Array, from: number, band: number) => {
    const texts: number[] = [];
    let slot = slotOf(signature, from, band);
    for (let entry = table[slot] ?? 0; entry !== 0; entry = table[slot] ?? 0) {
      const text = Math.floor((entry - 1) / BANDS);
      const place = text * SIZE + band * ROWS;
      if ((entry - 1) % BANDS === band && isSame(signatures, place, signature, from + band * ROWS)) texts.push(text);
      slot = (slot + 1) & (table.length - 1);
    }
    return { texts, slot };
  };
  const enter = (text: number) => {
    for (let band = 0; band < BANDS; band += 1) {
      const { texts, slot } = lookUp(signatures, text * SIZE, band);
      if (texts.length < MOST_IN_BAND) table[slot] = text * BANDS + band + 1;
    }
  };
  const keep = (signature: Uint8Array) => {
    if ((kept + 1) * SIZE > signatures.length) signatures = grown(signatures);
    signatures.set(signature, kept * SIZE);
    kept += 1;
    if (kept * BANDS * 2 <= table.length) return enter(kept - 1);
    table = new Uint32Array(table.length * 2);
    for (let text = 0; text < kept; text += 1) enter(text);
  };
  return {
    isRepeated(text) {
      const signature = signatureOf(text);
      if (signature === undefined) return false;
      for (let band = 0; band < BANDS; band += 1) {
        const { texts } = lookUp(signature, 0, band);
        if (texts.some((other) => countEqual(signatures, other * SIZE, signature) >= LEAST_EQUAL)) return true;
      }
      keep(signature);
      return false;
    },
  };
}

function isSame(one: Uint8Array, oneFrom: number, other: Uint8Array, otherFrom: number): boolean {
  for (let row = 0; row < ROWS; row += 1) if (one[oneFrom + row] !== other[otherFrom + row]) return false;
  return true;
}

function countEqual(one: Uint8Array, from: number, other: Uint8Array): number {
  let equal = 0;
  for (let at = 0; at < SIZE; at += 1) if (one[from + at] === other[at]) equal += 1;
  return equal;
}

function grown(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(bytes.length * 2);
  larger.set(bytes);
  return larger;
}
