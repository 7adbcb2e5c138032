/**
 * The start of a program that outlives the connection, in one round trip. Pure. The launch script of `launch-script.ts` is piped
 * into a shell that is left behind, in a session of its own where `setsid` is there.
 *
 * Promises: values of the environment are set by lines of this script, which comes on stdin, and stand in no file; this script is
 * over when the launch has reported, and holds nothing of the launch; the launch holds nothing of the connection once it has
 * reported. A connection that drops ends nothing: the report is in its file.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import { commandOf } from '../describe-look.ts';
import { LAUNCH_SHELL_WORD, type LaunchReport, parseReport, renderLaunchScript, reportPathOf } from '../launch-script.ts';
import type { DetachedStart, ProcessIdentity } from '../machine.ts';
import { parseStat } from '../parse-stat.ts';
import { type Frames, frameFunctions } from './frames.ts';
import { renderExports } from './run-script.ts';

/** Of what setup lines wrote: far above what a person reads. */
const LOG_BYTES = 100_000;

/** Between its birth and the moment it becomes the program, a child has the command line of its shell: a millisecond, as a rule. */
const BECOMES_LOOKS = 100;

export function renderStart(request: DetachedStart, nonce: string): string {
  const log = quoteShell(request.logPath);
  const report = quoteShell(reportPathOf(request.statusPath));
  return [
    `aerie_launch=${quoteShell(renderLaunchScript(request))}`,
    ...renderLaunch(request),
    'aerie_before=0',
    `if test -f ${log}; then aerie_before=$(wc -c 2>/dev/null <${log}); fi`,
    // A shell says `Killed` on its own stderr; what the launch says there is for the reader.
    '{ aerie_said=$(aerie_start 2>&4); } 4>&2 2>/dev/null',
    frameFunctions(nonce),
    'aerie_say said "$aerie_said"',
    `if test -f ${report}; then aerie_say report "$(head -c 4096 2>/dev/null <${report}; printf .)"; fi`,
    BECOME,
    `case $aerie_said in *'${LAUNCH_SHELL_WORD} started '*) aerie_become ;; esac`,
    `if test -f ${log}; then`,
    `  printf '\\n==> %slog <==\\n' "$aerie_nonce"`,
    `  tail -c +$((aerie_before + 1)) 2>/dev/null <${log} | tail -c ${LOG_BYTES}`,
    'fi',
    'exit 0',
    '',
  ].join('\n');
}

/**
 * A shell without a terminal makes what it starts with `&` deaf to SIGINT and SIGQUIT for good, and the program with it. So the
 * launch is started in a pipe and waited for, and who hears its report ends the one who waits (its parent, by SIGKILL). `.` says
 * that it was heard to its end. A waiting shell may keep its end of the pipe, and nothing else of the connection.
 */
function renderLaunch({ env, marker }: DetachedStart): string[] {
  return [
    'aerie_hear() {',
    '  while IFS= read -r aerie_line; do',
    `    printf '%s\\n' "$aerie_line"`,
    `    case $aerie_line in '${LAUNCH_SHELL_WORD} started '*) break ;; esac`,
    '  done',
    '  printf .',
    '  read -r aerie_stat </proc/self/stat',
    `  set -- \${aerie_stat##*') '}`,
    '  kill -s KILL "$2"',
    '}',
    'aerie_start() {',
    ...renderExports({ ...env, AERIE_LAUNCH: marker }),
    '  aerie_shell=sh; if command -v bash >/dev/null 2>&1; then aerie_shell=bash; fi',
    '  aerie_session=; if command -v setsid >/dev/null 2>&1; then aerie_session=setsid; fi',
    `  printf '%s\\n' "$aerie_launch" | $aerie_session $aerie_shell -s -- ${LAUNCH_SHELL_WORD} ${quoteShell(marker)} | aerie_hear`,
    '} 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-', // nothing of the connection is left open below
  ];
}

const BECOME = `
aerie_words() { tr '\\0' ' ' 2>/dev/null <"/proc/$1/cmdline"; }
aerie_become() {
  aerie_pid=\${aerie_said##*'${LAUNCH_SHELL_WORD} started '}
  aerie_pid=\${aerie_pid%%' '*}
  aerie_looks=0
  while test $aerie_looks -lt ${BECOMES_LOOKS}; do
    aerie_looks=$((aerie_looks + 1))
    aerie_stat=$(cat "/proc/$aerie_pid/stat" 2>/dev/null) || break
    set -- \${aerie_stat##*') '}
    test "$(aerie_words "$aerie_pid")" = "$(aerie_words "$2")" || break
    sleep 0.01 2>/dev/null || sleep 1
  done
  aerie_show "$aerie_nonce/proc/$aerie_pid/stat" "$aerie_nonce/proc/$aerie_pid/cmdline"
}`;

export type StartReply =
  | { readonly kind: 'started'; readonly identity: ProcessIdentity }
  | { readonly kind: 'failed'; readonly report: Exclude<LaunchReport, { kind: 'started' }>; readonly log: string }
  /** The script itself did not come to its end. */
  | { readonly kind: 'unread' };

export function parseStart(frames: Frames): StartReply {
  const said = frames.get('said');
  if (said === undefined) return { kind: 'unread' };
  const heard = parseReport(said.replace(/\.$/, ''));
  const report = heard.kind === 'silent' ? parseReport((frames.get('report') ?? '').replace(/\.$/, '')) : heard;
  if (report.kind !== 'started') return { kind: 'failed', report, log: frames.get('log') ?? '' };
  const { pid, startTicks, bootId } = report;
  const stat = parseStat(frames.get(`/proc/${pid}/stat`) ?? '');
  const isSame = stat !== undefined && stat.startTicks === startTicks;
  const command = isSame ? commandOf(stat.name, frames.get(`/proc/${pid}/cmdline`) ?? '') : '';
  return { kind: 'started', identity: { pid, startTicks, bootId, command } };
}
