/**
 * Bytes of a file that another process may be writing, as they are. Pure. The file is opened once and asked through its
 * descriptor, so that size and bytes are of one file though its name may go to another meanwhile. What is no plain file is not
 * opened: a pipe would wait for its writer.
 */
import { quoteShell } from '../../base/quote-shell.ts';

export interface SliceQuestion {
  readonly path: string;
  readonly offset: number;
  readonly most: number;
}

export function renderReadFile({ path, offset, most }: SliceQuestion): string {
  const file = quoteShell(path);
  return [
    'LC_ALL=C; export LC_ALL',
    `test -f ${file} && test -r ${file} || { printf '${NONE}\\n'; exit 0; }`,
    'aerie_read() {',
    `  aerie_at=/proc/self/fd/3; test -r "$aerie_at" || aerie_at=${file}`,
    '  aerie_size=$(wc -c <"$aerie_at") || return',
    '  aerie_size=$((aerie_size))', // some write spaces before it
    `  aerie_left=$((aerie_size - ${offset}))`,
    `  if test "$aerie_left" -gt ${most}; then aerie_left=${most}; fi`,
    `  printf '%s\\n' "$aerie_size"`,
    `  if test "$aerie_left" -gt 0; then tail -c +${offset + 1} -- "$aerie_at" | head -c "$aerie_left"; fi; return 0`,
    '}',
    `{ aerie_read; } 3<${file} 2>/dev/null || printf '${NONE}\\n'`,
    '',
  ].join('\n');
}

const NONE = 'none';

/** The first line is the size, or says that there is no such file; 'unread' = it is neither. */
export function parseReadFile(stdout: Uint8Array): { readonly bytes: Uint8Array; readonly size: number } | 'none' | 'unread' {
  const end = stdout.indexOf(0x0a);
  const first = new TextDecoder().decode(stdout.subarray(0, Math.max(0, end)));
  if (first === NONE) return NONE;
  return end > 0 && /^\d+$/.test(first) ? { bytes: stdout.subarray(end + 1), size: Number(first) } : 'unread';
}
