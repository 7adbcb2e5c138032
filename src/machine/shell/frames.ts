/**
 * How a script says several things on one stdout, so that nobody's content is taken for another's. Pure. Each thing is a frame as
 * `head -v` writes it: `==> NAME <==`, then its bytes, whatever they are. One process prints any number of files in this way,
 * also those of /proc, whose size nobody knows before.
 *
 * A nonce makes the names: a path of dots and slashes that leads to the root (`/.///././…`), new for every script, so that
 * `NONCE/proc/7/cmdline` is a file's name and no command line can have written it.
 */
import { quoteShell } from '../../base/quote-shell.ts';

/** Each bit is `/.` or `//`: 40 bits, given once, are guessed by nobody. */
const NONCE_BYTES = 5;

export function renderNonce(random: Uint8Array): string {
  const bits = [...random.subarray(0, NONCE_BYTES)].flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> bit) & 1));
  return `/.${bits.map((bit) => (bit === 1 ? '//' : '/.')).join('')}`;
}

/** A command line of python may hold a config of some KiB; the kernel keeps at most 2 MiB of one. */
const FRAME_BYTES = 65_536;

/**
 * `aerie_say NAME TEXT` says a thing, `aerie_show FILE…` what files hold; each file is named with the nonce before it. A file that
 * is gone or not to be read has no frame. LC_ALL: bytes are bytes, and programs speak English.
 */
export function frameFunctions(nonce: string): string {
  return [
    'LC_ALL=C; export LC_ALL',
    `aerie_nonce=${quoteShell(nonce)}`,
    `aerie_say() { printf '\\n==> %s%s <==\\n%s' "$aerie_nonce" "$1" "$2"; }`,
    `aerie_show() { printf '\\n'; head -v -c ${FRAME_BYTES} "$@" 2>/dev/null; }`,
  ].join('\n');
}

/** Text by name; of files, by path. */
export type Frames = ReadonlyMap<string, string>;

export function parseFrames(stdout: Uint8Array, nonce: string): Frames {
  const [, ...pieces] = `\n${new TextDecoder().decode(stdout)}`.split(`\n==> ${nonce}`);
  return new Map(
    pieces.flatMap((piece) => {
      const end = piece.indexOf(' <==\n');
      return end < 0 ? [] : [[piece.slice(0, end), piece.slice(end + 5)] as const];
    }),
  );
}

/** Numbers with spaces between. */
export function numbersIn(text: string | undefined): number[] {
  return (text ?? '')
    .split(' ')
    .filter((word) => /^\d+$/.test(word))
    .map(Number);
}
