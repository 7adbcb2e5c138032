/** Who listens on a port, in one round trip. Pure. The kernel's tables name sockets; open files name who has them. */
import { commandOf } from '../describe-look.ts';
import type { PortOwner } from '../machine.ts';
import { parseStat } from '../parse-stat.ts';
import { type Frames, frameFunctions } from './frames.ts';
import { FIND, TABLE } from './processes-in-sh.ts';

/** Lines of the tables are `sl local_address rem_address st … inode`; 0A is LISTEN. grep spares the shell thousands of them. */
export function renderPortOwner(port: number, nonce: string): string {
  const suffix = port.toString(16).toUpperCase().padStart(4, '0');
  return [
    frameFunctions(nonce),
    ...[TABLE, FIND],
    `aerie_tables='/proc/self/net/tcp /proc/self/net/tcp6'`,
    'if ! test -r /proc/self/net/tcp; then aerie_say sockets unknown; exit 0; fi',
    `aerie_read() { if command -v grep >/dev/null 2>&1; then grep -h ':${suffix} ' $aerie_tables; else cat $aerie_tables; fi 2>/dev/null; }`,
    'aerie_lines=$(aerie_read)',
    'aerie_sockets= IFS=$aerie_nl',
    'for aerie_line in $aerie_lines; do',
    '  unset IFS',
    '  set -- $aerie_line',
    `  case $2:$4 in *:${suffix}:0A) aerie_sockets="$aerie_sockets \${10}" ;; esac`,
    'done',
    'unset IFS',
    'aerie_say sockets "$aerie_sockets"',
    'test -n "$aerie_sockets" || exit 0',
    'aerie_has_socket() {',
    '  for aerie_socket in $aerie_sockets; do',
    '    case "$aerie_seen$aerie_nl" in *" -> socket:[$aerie_socket]$aerie_nl"*) return 0 ;; esac',
    '  done',
    '  return 1',
    '}',
    'aerie_table',
    'set --',
    `for aerie_row in $aerie_rows; do set -- "$@" "/proc/\${aerie_row%%:*}/fd"; done`,
    'aerie_find "ls -l" aerie_has_socket "$@"',
    'set -- $aerie_found',
    'test $# -gt 0 || exit 0',
    `aerie_pid=\${1#/proc/} aerie_pid=\${aerie_pid%/fd}`,
    'aerie_say owner "$aerie_pid"',
    'aerie_show "$aerie_nonce/proc/$aerie_pid/stat" "$aerie_nonce/proc/$aerie_pid/cmdline"',
    'exit 0',
    '',
  ].join('\n');
}

export function parsePortOwner(frames: Frames, port: number): PortOwner | undefined {
  if (frames.get('sockets')?.trim() === '') return undefined;
  const pid = Number(frames.get('owner') ?? Number.NaN);
  const stat = parseStat(frames.get(`/proc/${pid}/stat`) ?? '');
  if (stat === undefined) return { port, pid: undefined, command: '' };
  return { port, pid, command: commandOf(stat.name, frames.get(`/proc/${pid}/cmdline`) ?? '') };
}
