/**
 * What the name of an element type means: how many bits, and when two spellings are one type. Pure.
 * Engines spell one type in many ways (`fp8`, `fp8_e4m3`, `torch.float8_e4m3fn`), so nothing else compares names.
 */

/** Types under every name that engines give them. Bits of a block type count its scales: q8_0 is 32 × 8 bits + 16. */
const TYPES: readonly { readonly type: string; readonly bits: number; readonly names: RegExp }[] = [
  { type: 'f32', bits: 32, names: /^(f|fp|float)32$|^float$/ },
  { type: 'bf16', bits: 16, names: /^bf(loat)?16$/ },
  { type: 'f16', bits: 16, names: /^(f|fp|float)16$|^half$/ },
  { type: 'fp8_e5m2', bits: 8, names: /^(f|fp|float)8_?e5m2/ },
  { type: 'fp8_ds_mla', bits: 8, names: /^fp8_ds_mla$/ },
  { type: 'fp8_e4m3', bits: 8, names: /^(f|fp|float)8(_?e4m3.*)?$/ },
  { type: 'fp8', bits: 8, names: /^(f|fp|float)8/ }, // some other variant; eight bits all the same
  { type: 'int8', bits: 8, names: /^u?int8|^i8$/ },
  { type: 'nvfp4', bits: 4.5, names: /^nvfp4/ },
  { type: 'mxfp4', bits: 4.25, names: /^mxfp4/ },
  { type: 'fp4', bits: 4, names: /^(f|fp|float)4/ },
  { type: 'int4', bits: 4, names: /^u?int4|^i4$/ },
  { type: 'q8_0', bits: 8.5, names: /^q8_0$/ },
  { type: 'q5_1', bits: 6, names: /^q5_1$/ },
  { type: 'q5_0', bits: 5.5, names: /^q5_0$/ },
  { type: 'q4_1', bits: 5, names: /^q4_1$/ },
  { type: 'q4_0', bits: 4.5, names: /^q4_0$/ },
  { type: 'iq4_nl', bits: 4.5, names: /^iq4_nl$/ },
];

/**
 * Bits per element, undefined where the name does not tell. `auto` does not: engines turn it into fp8, silently, for
 * checkpoints that carry FP8 scales for the KV cache.
 */
export function countBits(dtype: string): number | undefined {
  return typeOf(dtype)?.bits;
}

/** One name for each type, whatever the spelling; a name that is none of these as it stands. */
export function canonicalType(dtype: string): string {
  return typeOf(dtype)?.type ?? dtype;
}

/** Whether a server has said anything: dialects report what they cannot learn as `unknown` or ''. */
export function isKnown(value: string): boolean {
  return value !== '' && value.toLowerCase() !== 'unknown';
}

export function isSameType(a: string, b: string): boolean {
  return (typeOf(a)?.type ?? plainOf(a)) === (typeOf(b)?.type ?? plainOf(b));
}

function typeOf(dtype: string): { type: string; bits: number } | undefined {
  const plain = plainOf(dtype);
  return TYPES.find(({ names }) => names.test(plain));
}

function plainOf(dtype: string): string {
  return dtype
    .trim()
    .toLowerCase()
    .replace(/^torch\./, '')
    .replaceAll('-', '_');
}
