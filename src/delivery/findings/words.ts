/** Text → words and stretches of words as numbers, for findings that compare texts. Pure; the same text gives the same numbers. */

/** Scripts that are written without spaces: each character counts as a word there. */
const UNSPACED = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}';
/** Built from a string, because the compiler's target is older than the `v` flag; every Node that runs Aerie has it. */
const WORD = new RegExp(`[${UNSPACED}]|[[\\p{L}\\p{N}\\p{M}]--[${UNSPACED}]]+`, 'gv');

/** Lower case, without punctuation and without the differences that Unicode calls compatible: those do not make another text. */
export function wordsOf(text: string): string[] {
  return text.normalize('NFKC').toLowerCase().match(WORD) ?? [];
}

/** FNV-1a over UTF-16 units, then mixed (murmur3's finaliser): every bit of the result depends on every character. */
export function hashWord(word: string, seed = 0x811c9dc5): number {
  let hash = seed;
  for (let at = 0; at < word.length; at += 1) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193);
  return mix(hash);
}

export function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Of each `length` words in a row, one number below 2³²; a text with fewer words is one stretch. */
export function hashStretches(hashes: readonly number[], length: number): number[] {
  if (hashes.length === 0) return [];
  const stretches: number[] = [];
  const size = Math.min(length, hashes.length);
  for (let end = size; end <= hashes.length; end += 1) {
    let hash = size;
    for (let at = end - size; at < end; at += 1) hash = mix(Math.imul(hash, 31) + (hashes[at] ?? 0));
    stretches.push(hash);
  }
  return stretches;
}
