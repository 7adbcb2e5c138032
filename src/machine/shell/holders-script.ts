/** Who holds memory of the GPUs, all but what nvidia-smi says, in one round trip. Pure. Only open files of the driver leave the machine. */
import { bearsOnGpus, describeProcess, driverFiles, parseMinors, parseUsers } from '../describe-holders.ts';
import type { SeenProcess } from '../holder-facts.ts';
import { hasEnded, type ProcessStat, parseStat } from '../parse-stat.ts';
import { type Frames, frameFunctions, numbersIn } from './frames.ts';
import { READ_BOOT } from './look-script.ts';
import { FIND, TABLE } from './processes-in-sh.ts';

/** `listed`: pids that nvidia-smi names. Where neither it nor the driver is, nobody is looked at. */
export interface HoldersQuestion {
  readonly listed: readonly number[];
  readonly isSmiThere: boolean;
}

/** The leader of a zombie has closed its files; a thread of it may not have. */
export function renderHolders({ listed, isSmiThere }: HoldersQuestion, nonce: string): string {
  return [
    frameFunctions(nonce),
    ...[TABLE, FIND],
    READ_BOOT,
    'aerie_say boot "$aerie_boot"',
    `if test -e /dev/nvidiactl; then aerie_say devices yes; ${isSmiThere ? '' : 'else exit 0; '}fi`,
    'aerie_say namespace "$(readlink /proc/self/ns/pid 2>/dev/null)"',
    'aerie_table',
    'aerie_hidden= aerie_folders= aerie_ended=',
    'for aerie_row in $aerie_rows; do',
    `  aerie_pid=\${aerie_row%%:*}`,
    '  case $aerie_row in',
    '    *:[ZXx]) aerie_ended="$aerie_ended $aerie_pid" ;;',
    '    *) if test -r "/proc/$aerie_pid/fd"; then aerie_folders="$aerie_folders /proc/$aerie_pid/fd"; elif test -d "/proc/$aerie_pid"; then aerie_hidden="$aerie_hidden $aerie_pid"; fi ;;',
    '  esac',
    'done',
    'aerie_say hidden "$aerie_hidden"',
    `aerie_uses_driver() { case $aerie_seen in *' -> /dev/nvidia'*) ;; *) false ;; esac; }`,
    'aerie_find "ls -l" aerie_uses_driver $aerie_folders',
    `aerie_pids=" ${listed.join(' ')} "`,
    'for aerie_folder in $aerie_found; do',
    `  aerie_pid=\${aerie_folder#/proc/} aerie_pid=\${aerie_pid%/fd}`,
    '  aerie_say "open $aerie_pid" "$(ls -l "$aerie_folder" 2>/dev/null)"',
    '  aerie_pids="$aerie_pids$aerie_pid "',
    'done',
    'for aerie_pid in $aerie_ended; do',
    '  aerie_seen=$(ls -l /proc/$aerie_pid/task/[0-9]*/fd 2>/dev/null)',
    '  if aerie_uses_driver; then aerie_say "open $aerie_pid" "$aerie_seen"; aerie_pids="$aerie_pids$aerie_pid "; fi',
    'done',
    // Of a zombie, its parent too.
    'for aerie_row in $aerie_rows; do',
    `  case "$aerie_row $aerie_pids" in *:[ZXx]" "*" \${aerie_row%%:*} "*) aerie_row=\${aerie_row#*:} aerie_pids="$aerie_pids\${aerie_row%%:*} " ;; esac`,
    'done',
    'set -- "$aerie_nonce/etc/passwd"',
    'for aerie_pid in $aerie_pids; do',
    '  aerie_at=$aerie_nonce/proc/$aerie_pid',
    '  set -- "$@" "$aerie_at/stat" "$aerie_at/status" "$aerie_at/cgroup" "$aerie_at/cmdline"',
    'done',
    'for aerie_card in /proc/driver/nvidia/gpus/*/information; do set -- "$@" "$aerie_nonce$aerie_card"; done',
    'aerie_show "$@"',
    'exit 0',
    '',
  ].join('\n');
}

export interface ShellHolders {
  readonly hasDevices: boolean;
  readonly processes: readonly SeenProcess[];
  readonly uuidByMinor: ReadonlyMap<number, string>;
  readonly pidNamespace: string;
}

export function parseHolders(frames: Frames, listed: readonly number[]): ShellHolders {
  const bootId = frames.get('boot') ?? '';
  const users = parseUsers(frames.get('/etc/passwd') ?? '');
  const hidden = new Set(numbersIn(frames.get('hidden')));
  const stats = [...frames].flatMap(([name, text]) => (/^\/proc\/\d+\/stat$/.test(name) ? (parseStat(text) ?? []) : []));
  const byPid = new Map(stats.map((stat) => [stat.pid, stat]));
  const text = (pid: number, name: string) => frames.get(`/proc/${pid}/${name}`) ?? '';
  const seen = stats.flatMap((stat) => {
    const devices = hidden.has(stat.pid) ? undefined : openDevices(frames.get(`open ${stat.pid}`) ?? '');
    if (!bearsOnGpus(stat, devices, listed)) return [];
    const above = hasEnded(stat.state) ? byPid.get(stat.parent) : undefined;
    const parent = above === undefined ? undefined : { stat: above, commandLine: text(above.pid, 'cmdline') };
    const [commandLine, status, cgroup] = [text(stat.pid, 'cmdline'), text(stat.pid, 'status'), text(stat.pid, 'cgroup')];
    return [describeProcess({ stat, devices, bootId, commandLine, status, cgroup, parent }, users)];
  });
  const unseen = [...hidden].filter((pid) => !byPid.has(pid)).map((pid) => asHidden(pid, bootId));
  const information = [...frames].flatMap(([name, text]) => (name.startsWith('/proc/driver/nvidia/gpus/') ? [text] : []));
  return {
    hasDevices: frames.has('devices'),
    processes: [...seen, ...unseen],
    uuidByMinor: parseMinors(information),
    pidNamespace: frames.get('namespace') ?? '',
  };
}

/** Targets in what `ls -l` prints. */
function openDevices(listing: string): string[] {
  return driverFiles(listing.split('\n').map((line) => line.slice(line.lastIndexOf(' -> ') + ' -> '.length)));
}

/** Nothing is known of it but that it is there and may not be looked into. */
function asHidden(pid: number, bootId: string): SeenProcess {
  const stat: ProcessStat = { pid, name: '', state: 'S', parent: 0, session: 0, cpuTicks: 0, startTicks: 0 };
  return describeProcess(
    { stat, devices: undefined, bootId, commandLine: '', status: '', cgroup: '', parent: undefined },
    new Map(),
  );
}
