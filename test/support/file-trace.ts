/**
 * What a process did to its files, in order, as the kernel saw it (strace): the only witness of an fsync, which a kill
 * cannot test because the page cache survives it. Also makes what a power cut would have left of them.
 *
 * A call is seen twice, when it begins and when it has returned; one thing surely happened before another when it had
 * returned before the other began.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface FileCall {
  readonly name: string;
  /** Of the file; of `rename` the new name. */
  readonly path: string;
  readonly from: string;
  /** What was written. */
  readonly data: Buffer;
  /** Where it was written, -1 = at the end; of a truncation the new length. */
  readonly offset: number;
  readonly creates: boolean;
  readonly empties: boolean;
  /** Places in the trace. */
  readonly began: number;
  readonly returned: number;
}

const CALLS =
  'openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,ftruncate,truncate,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync';

/** The command to put before the traced one. Every byte of what is written is kept. */
export function traced(traceFile: string): string[] {
  return ['strace', '-f', '-y', '-ttt', '-xx', '-s', '2000000', '-o', traceFile, '-e', `trace=${CALLS}`, '-e', 'signal=none'];
}

/** The command to put before one that is to be killed when it begins the n-th fsync of this file. */
export function killedAtSync(path: string, nth: number): string[] {
  const calls = 'fsync,fdatasync';
  return [
    'strace',
    '-f',
    '-qq',
    '-o',
    '/dev/null',
    '-P',
    path,
    '-e',
    `trace=${calls}`,
    '-e',
    `inject=${calls}:signal=SIGKILL:when=${nth}`,
  ];
}

/** Why tracing is not possible here, or undefined. */
export function whyNoTrace(): string | undefined {
  const tried = spawnSync('strace', ['-f', '-o', '/dev/null', 'true'], { encoding: 'utf8' });
  if (tried.error !== undefined) return 'there is no strace';
  return tried.status === 0 ? undefined : `strace is not permitted: ${tried.stderr.trim().split('\n')[0] ?? ''}`;
}

/** The calls that succeeded, in the order in which they began. */
export function readTrace(traceFile: string): FileCall[] {
  const open = new Map<string, { text: string; began: number }>();
  const calls: FileCall[] = [];
  for (const [at, line] of readFileSync(traceFile, 'latin1').split('\n').entries()) {
    const [, thread = '', text = ''] = /^(\d+) +[\d.]+ (.*)$/.exec(line) ?? [];
    const unfinished = / ?<unfinished \.\.\.>$/.exec(text);
    if (unfinished !== null) {
      open.set(thread, { text: text.slice(0, unfinished.index), began: at });
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>/.exec(text);
    const begun = resumed === null ? { text: '', began: at } : open.get(thread);
    if (begun === undefined) continue;
    const call = parseCall(begun.text + text.slice(resumed?.[0].length ?? 0), begun.began, at);
    if (call !== undefined) calls.push(call);
  }
  return calls.sort((a, b) => a.began - b.began);
}

function parseCall(text: string, began: number, returned: number): FileCall | undefined {
  const [, name = '', args = '', result = '-1'] = /^(\w+)\((.*)\) += (-?\d+)/.exec(text) ?? [];
  if (Number(result) < 0) return undefined;
  const opened = /= \d+<([^>]*)>/.exec(text.slice(text.lastIndexOf(') ')))?.[1];
  const strings = [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = '']) =>
    Buffer.from(hex.replaceAll('\\x', ''), 'hex'),
  );
  const descriptor = /^\d+<([^>]*)>/.exec(args)?.[1];
  const isWrite = /^p?writev?2?(64)?$/.test(name);
  const numbers = [...args.replaceAll(/"[^"]*"/g, '').matchAll(/, (\d+)(?=,|$|\))/g)].map(([, number]) => Number(number));
  const names = strings.map((bytes) => bytes.toString('utf8'));
  const isPositioned = name.startsWith('pwrite');
  return {
    name,
    path: decodePath(opened ?? descriptor ?? names.at(-1) ?? ''),
    from: names.length > 1 ? (names[0] ?? '') : '',
    data: isWrite ? Buffer.concat(strings).subarray(0, Number(result)) : Buffer.alloc(0),
    offset: isPositioned ? offsetOf(name, numbers) : name === 'ftruncate' || name === 'truncate' ? (numbers[0] ?? 0) : -1,
    creates: args.includes('O_CREAT') || name.startsWith('mkdir') || name === 'creat',
    empties: args.includes('O_TRUNC'),
    began,
    returned,
  };
}

/** `pwrite64(fd, data, length, offset)`, `pwritev(fd, [...], count, offset)`, `pwritev2(…, offset, flags)`. */
function offsetOf(name: string, numbers: readonly number[]): number {
  return (name === 'pwritev2' ? numbers.at(-2) : numbers.at(-1)) ?? -1;
}

/** Under `-xx` a path behind a descriptor is written in hexadecimal too, in some versions. */
function decodePath(text: string): string {
  return text.startsWith('\\x') ? Buffer.from(text.replaceAll('\\x', ''), 'hex').toString('utf8') : text;
}
