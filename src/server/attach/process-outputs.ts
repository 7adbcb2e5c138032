/**
 * Where processes write their output, as /proc tells it: one script for the machine, and the reading of what it prints. Pure.
 * Fields end with NUL, which no path and no argument holds; names are anybody's.
 */
import { parseStat } from '../../machine/parse-stat.ts';
import type { SeenProcess } from './server-log.ts';

export type OutputKind = 'file' | 'pipe' | 'socket' | 'terminal' | 'nowhere' | 'closed' | 'other';

export interface Output {
  /** 1 = stdout, 2 = stderr. */
  readonly descriptor: 1 | 2;
  readonly kind: OutputKind;
  /** As the kernel names it: a path, `pipe:[4711]`. */
  readonly target: string;
  /** The path leads to the very file that is written. */
  readonly isByName: boolean;
}

export interface ProcessOutputs extends SeenProcess {
  readonly name: string;
  readonly parent: number;
  readonly session: number;
  readonly cgroup: string;
  readonly user: string;
  /** Its open files may be seen. */
  readonly isVisible: boolean;
  readonly outputs: readonly Output[];
}

/** Ancestors and children that are looked at: a server is a launcher, a main process and a handful of workers. */
const MOST_UP = 8;
const MOST_DOWN = 16;

/**
 * `sh -c SCRIPT sh PID`: the process, its ancestors from the nearest on, its children. Only `cat`, `tr`, `readlink`, `stat` and `id`
 * of coreutils.
 */
export const OUTPUTS_SCRIPT = `
say() { printf '%s\\000' "$@"; }
one() {
  test -d "/proc/$1" || return 0
  say process "$1" "$(cat "/proc/$1/stat" 2>/dev/null)" "$(tr '\\000' '\\n' <"/proc/$1/cmdline" 2>/dev/null)" \\
    "$(cat "/proc/$1/cgroup" 2>/dev/null)" "$(stat -c %U "/proc/$1" 2>/dev/null)"
  if test -r "/proc/$1/fd" && readlink "/proc/$1/fd/0" "/proc/$1/fd/1" "/proc/$1/fd/2" >/dev/null 2>&1; then say seen; else say unseen; fi
  for n in 1 2; do
    f=/proc/$1/fd/$n
    l=$(readlink "$f" 2>/dev/null) || l=
    k=other; test -f "$f" && k=file; test -p "$f" && k=pipe; test -S "$f" && k=socket; test -c "$f" && k=device
    s=other; test "$f" -ef "$l" 2>/dev/null && s=same
    say "$k" "$l" "$s"
  done
}
up() { while read -r key value; do test "$key" = PPid: && echo "$value"; done <"/proc/$1/status"; } 2>/dev/null
say me "$(id -un 2>/dev/null)"
one "$1"
p=$(up "$1"); i=0
while test "\${p:-0}" -gt 1 && test "$i" -lt ${MOST_UP}; do one "$p"; p=$(up "$p"); i=$((i + 1)); done
i=0
for c in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
  test "$i" -lt ${MOST_DOWN} && one "$c"; i=$((i + 1))
done
exit 0
`;

export interface SeenOutputs {
  readonly me: string;
  /** The one that was asked about first, then its ancestors, the nearest first, then its children. */
  readonly processes: readonly ProcessOutputs[];
}

const FIELDS = 13;

export function parseOutputs(text: string): SeenOutputs {
  const [tag, me = '', ...fields] = text.split('\0');
  const processes: ProcessOutputs[] = [];
  if (tag !== 'me') return { me: '', processes };
  for (let at = 0; fields[at] === 'process'; at += FIELDS) {
    const process = parseProcess(fields.slice(at, at + FIELDS));
    if (process !== undefined) processes.push(process);
  }
  return { me, processes };
}

function parseProcess(fields: readonly string[]): ProcessOutputs | undefined {
  const [, pidText, statText = '', words = '', cgroup = '', user = '', seen, ...outputs] = fields;
  const stat = parseStat(statText);
  const pid = Number(pidText);
  if (stat === undefined || stat.pid !== pid || outputs.length < 6) return undefined;
  const outputAt = (descriptor: 1 | 2): Output => {
    const [kind = '', target = '', same] = outputs.slice((descriptor - 1) * 3);
    return { descriptor, kind: kindOf(kind, target), target, isByName: same === 'same' };
  };
  return {
    ...{ pid, name: stat.name, parent: stat.parent, session: stat.session, cgroup, user },
    words: words === '' ? [] : words.split('\n'),
    isVisible: seen === 'seen',
    outputs: [outputAt(1), outputAt(2)],
  };
}

function kindOf(kind: string, target: string): OutputKind {
  if (kind === 'file' || kind === 'pipe' || kind === 'socket') return kind;
  if (target === '') return 'closed';
  if (kind !== 'device') return 'other';
  if (target === '/dev/null') return 'nowhere';
  return /^\/dev\/(pts\/\d+|tty\w*|console|ptmx)$/.test(target) ? 'terminal' : 'other';
}

/** `sh -c SCRIPT sh INODE`: pids that read from a pipe, one a line. */
export const READERS_SCRIPT = `
ls -l /proc/[0-9]*/fd 2>/dev/null | while IFS= read -r line; do
  case $line in
    /proc/*) d=$line ;;
    lr*"-> pipe:[$1]" | lrw*"-> pipe:[$1]") printf '%s\\n' "$d" ;;
  esac
done
exit 0
`;

export function parseReaders(text: string): number[] {
  return [...new Set([...text.matchAll(/^\/proc\/(\d+)\/fd:$/gm)].map(([, pid]) => Number(pid)))];
}

/** `sh -c SCRIPT sh PID`: its name, then each regular file that it has open for writing: descriptor, path, whether the path leads to it. */
export const WRITTEN_FILES_SCRIPT = `
say() { printf '%s\\000' "$@"; }
say "$(cat "/proc/$1/comm" 2>/dev/null)"
for f in "/proc/$1/fd/"*; do
  test -f "$f" || continue
  case $(ls -l "$f" 2>/dev/null) in
    l?w*) l=$(readlink "$f"); s=other; test "$f" -ef "$l" && s=same; say "\${f##*/}" "$l" "$s" ;;
  esac
done
exit 0
`;

export interface WrittenFiles {
  readonly name: string;
  readonly files: readonly { readonly descriptor: number; readonly path: string; readonly isByName: boolean }[];
}

export function parseWrittenFiles(text: string): WrittenFiles {
  const [name = '', ...fields] = text.split('\0');
  const files = [];
  for (let at = 0; at + 2 < fields.length; at += 3)
    files.push({ descriptor: Number(fields[at]), path: fields[at + 1] ?? '', isByName: fields[at + 2] === 'same' });
  return { name, files: files.filter(({ descriptor }) => Number.isInteger(descriptor)) };
}

/** The unit of systemd that a cgroup belongs to; undefined = none. `user@1000.service` is a manager, what is below it a unit of that user. */
export function unitOf(cgroup: string): { readonly unit: string; readonly isOfUser: boolean } | undefined {
  for (const line of cgroup.split('\n')) {
    const [, controllers, ...rest] = line.split(':');
    if (controllers !== '' && controllers !== 'name=systemd') continue;
    const parts = rest.join(':').split('/');
    const manager = parts.findIndex((part) => /^user@\d+\.service$/.test(part));
    const unit = parts
      .slice(manager + 1)
      .findLast((part) => /^[A-Za-z0-9:_.\\@-]+\.service$/.test(part) && !part.startsWith('-'));
    if (unit !== undefined) return { unit, isOfUser: manager >= 0 };
  }
  return undefined;
}
