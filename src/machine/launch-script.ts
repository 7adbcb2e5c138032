/**
 * The script that starts a program which outlives its starter, and what it says back. Pure: the same text is given on stdin to
 * a shell here and to one behind ssh (`bash -s -- aerie-launch MARKER`, in a session of its own), so that nothing of it stands
 * on a command line.
 *
 * Promises: the shell runs nothing before it has read the script to its end, so a starter that dies while it writes has
 * started nothing; it claims the launch before it touches anything, so that one that comes too late (`claim-launch.ts`) starts and
 * writes nothing; a setup line that fails stops the launch; the report is in a file before it is told; the exit status is
 * on the disk when its file is there. Values of the environment are given to the shell and never stand in here.
 * On failure the script says which step failed, with its exit status, and the reason stands in the log.
 */
import { dirname } from 'node:path/posix';
import { quoteShell } from '../base/quote-shell.ts';
import type { DetachedStart } from './machine.ts';
import { parseStat } from './parse-stat.ts';

/** Says to people in `ps` what the waiting shell is, and to Aerie that it is no program of the launch. */
export const LAUNCH_SHELL_WORD = 'aerie-launch';

export function launchShellArgs(marker: string): readonly string[] {
  return ['-s', '--', LAUNCH_SHELL_WORD, marker];
}

/** The waiting shell, not the program: it reaps the program and writes its exit status. */
export function isLaunchShell(command: string): boolean {
  return command.split(' ')[3] === LAUNCH_SHELL_WORD;
}

/** Where the script writes its report too: a starter that dies at once has not heard it. See `parseReport`. */
export function reportPathOf(statusPath: string): string {
  return `${statusPath}.start`;
}

/**
 * A folder, because only one can make it: the script, or who says that it will not come. Named by the marker, which no two launches
 * share, so that one that is left behind is in nobody's way.
 */
export function claimPathOf({ marker, statusPath }: Pick<DetachedStart, 'marker' | 'statusPath'>): string {
  return `${dirname(statusPath)}/${marker}.claim`;
}

/**
 * `{ … }` is read whole before its first line runs. File descriptor 3 is the starter's ear. Once the program runs, only SIGKILL ends
 * the waiting shell.
 */
export function renderLaunchScript(request: DetachedStart): string {
  const log = quoteShell(request.logPath);
  const status = quoteShell(request.statusPath);
  const report = quoteShell(reportPathOf(request.statusPath));
  const folders = [...new Set([dirname(request.logPath), dirname(request.statusPath)])].map(quoteShell).join(' ');
  const enter = ['aerie_doing=folder', `cd -- ${quoteShell(request.workFolder)} || exit`];
  return [
    '{',
    'exec 3>&1 </dev/null',
    'aerie_doing=log',
    // `exit` in a setup line comes here with 3 closed: then the file says it.
    `aerie_report() { printf '%s\\n' "$*" >${report}.new && mv -f -- ${report}.new ${report}; printf '%s\\n' "$*" >&3; }`,
    `trap 'aerie_end=$?; test -z "$aerie_doing" || aerie_report ${REPORT} failed $aerie_doing $aerie_end 2>/dev/null' EXIT`,
    `mkdir -p -- ${folders} || exit`,
    ...claim(quoteShell(claimPathOf(request))),
    'aerie_doing=log',
    `rm -f -- ${status} ${report} || exit`,
    `: >>${log} || exit`,
    `exec >>${log} 2>&1`,
    ...enter, // setup lines name files from the work folder
    ...condaHook(request.setup),
    ...request.setup.flatMap((line, nth) => [`aerie_doing='setup ${nth}'`, `eval ${quoteShell(line)} 3>&- || exit`]),
    'set +eu',
    ...enter, // a setup line may have gone elsewhere
    'aerie_boot=; aerie_stat=',
    'read -r aerie_boot 2>/dev/null </proc/sys/kernel/random/boot_id',
    'set -m 2>/dev/null',
    'case $-$(test -r /proc/self/stat || echo m) in',
    '*m*)',
    ...inBackground(request.command),
    ';;',
    '*)',
    ...inForeground(request.command),
    ';;',
    'esac',
    // The log is the program's: a disk that does not take the status did not end it.
    `{ printf '%s\\n' "$?" >${status}.new && { sync -- ${status}.new; mv -f -- ${status}.new ${status} && sync -- ${quoteShell(dirname(request.statusPath))}; }; } 2>/dev/null`,
    'exit 0',
    '}',
    '',
  ].join('\n');
}

/** Where the claim is taken, the files of the launch may be another's by now: only who listens is told. */
function claim(path: string): string[] {
  return [
    'aerie_doing=claim',
    `mkdir -- ${path} || {`,
    '  aerie_end=$?',
    `  test ! -d ${path} || { aerie_doing=; printf '%s\\n' '${REPORT} failed claimed 1' >&3; }`,
    '  exit $aerie_end',
    '}',
  ];
}

const REPORT = 'aerie-launch';

const REPORT_STARTED = `aerie_report ${REPORT} started "$aerie_pid" "$aerie_boot" "$aerie_stat"`;

/** Under job control (`set -m`), so that it has its own process group, and SIGINT and SIGQUIT as everybody. */
function inBackground(command: string): string[] {
  return [
    `${command} 3>&- &`,
    'aerie_pid=$!',
    'set +m',
    `trap '' HUP INT TERM PIPE`,
    'aerie_doing=',
    'read -r aerie_stat 2>/dev/null </proc/$aerie_pid/stat',
    REPORT_STARTED,
    'exec 3>&-',
    'wait "$aerie_pid"',
  ];
}

/**
 * A shell that has no job control without a terminal (dash, ash) makes what it starts in the background deaf to SIGINT and SIGQUIT.
 * There the child reports itself before it becomes the program; signals are caught, not ignored, so that it does not inherit that.
 * The waiting shell keeps the starter's ear open, and never speaks into it again.
 */
function inForeground(command: string): string[] {
  return [
    'trap : HUP INT TERM PIPE',
    'aerie_doing=',
    '(',
    `trap '' PIPE`, // the starter may be gone
    'read -r aerie_stat </proc/self/stat',
    `aerie_pid=\${aerie_stat%% *}`,
    REPORT_STARTED,
    'exec 3>&-',
    'trap - PIPE',
    command,
    ')',
  ];
}

/** `conda activate` is a function that only interactive shells have; its program says how to make it. */
function condaHook(setup: readonly string[]): string[] {
  if (!setup.some((line) => /^\s*conda\s+activate\b/.test(line))) return [];
  return [`command -v "\${CONDA_EXE:-conda}" >/dev/null && eval "$("\${CONDA_EXE:-conda}" shell.posix hook)" 3>&-`];
}

interface Started {
  readonly pid: number;
  /** 0: it had ended before it could be looked at, or the system has no /proc. */
  readonly startTicks: number;
  readonly bootId: string;
}

/** `claim`: its folder could not be made. `claimed`: somebody has said that this launch will not come. */
const FAILED_STEPS = ['log', 'claim', 'claimed', 'folder', 'setup'] as const;
type FailedStep = (typeof FAILED_STEPS)[number];

export type LaunchReport =
  | ({ readonly kind: 'started' } & Started)
  | {
      readonly kind: 'failed';
      readonly step: FailedStep;
      readonly setupLine: number;
      readonly exitStatus: number;
    }
  /** The shell said nothing whole: it was killed, or could not read the script (a quote that is not closed). */
  | { readonly kind: 'silent' };

/** The program was started. A shell that failed is heard to its end: its complaint may come after its report. */
export function saysStarted(text: string): boolean {
  return reportLine(text)?.startsWith(`${REPORT} started `) === true;
}

/** `aerie-launch started PID BOOT-ID STAT-LINE` (the last two empty without /proc), or `aerie-launch failed STEP [LINE] STATUS`. */
export function parseReport(text: string): LaunchReport {
  const [, what, ...words] = reportLine(text)?.split(' ') ?? [];
  if (what === 'started') {
    const [pid, bootId = '', ...rest] = words;
    const stat = parseStat(rest.join(' '));
    if (pid === undefined || !/^\d+$/.test(pid)) return { kind: 'silent' };
    return { kind: 'started', pid: Number(pid), bootId, startTicks: stat?.pid === Number(pid) ? stat.startTicks : 0 };
  }
  const [word, ...numbers] = words;
  const step = FAILED_STEPS.find((one) => one === word);
  if (what !== 'failed' || step === undefined) return { kind: 'silent' };
  const setupLine = step === 'setup' ? Number(numbers[0]) : 0;
  return { kind: 'failed', step, setupLine, exitStatus: Number(numbers.at(-1)) };
}

function reportLine(text: string): string | undefined {
  return text
    .split('\n')
    .slice(0, -1) // what follows the last newline may not be whole
    .find((line) => line.startsWith(`${REPORT} `));
}
