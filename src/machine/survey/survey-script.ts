/**
 * One look at a machine in one round trip: a script of POSIX sh and coreutils that tells the processes, the engines among them,
 * their logs, listeners, memory limits, GPUs and what the kernel wrote. Pure: questions in, script out; `read-survey.ts` reads
 * what it says. gzip, nvidia-smi, dmesg, journalctl and timeout are used where they are there.
 *
 * Promises: nothing that hangs (a driver, a dead network disk, a process whose memory is locked) holds up the rest: each part
 * runs by itself, and one that is not there in time is told as late. What a part says stands in a frame of base64 with its length,
 * so that no process can forge another's. It reads only; its own folder for what the parts write is removed at its end.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import { SURVEY_FUNCTIONS } from './survey-functions.ts';

export interface LogQuestion {
  /** Letters and digits: the name of its frames. */
  readonly name: string;
  readonly path: string;
  /** Only what stands from here on; left out: its beginning and its end. */
  readonly from?: number;
}

export interface SurveyQuestion {
  /** Letters and digits, drawn anew for each survey. */
  readonly nonce: string;
  /** Processes that are known already. */
  readonly pids: readonly number[];
  readonly logs: readonly LogQuestion[];
  /** Files of a few bytes, as exit statuses: name of the frame and path. */
  readonly files: readonly { readonly name: string; readonly path: string }[];
  /** Looks for engines by their command lines. */
  readonly findsEngines: boolean;
  /** Also tells the bytes of logs; where the logs can be read otherwise, only their size. */
  readonly readsLogs: boolean;
  /** GPUs and the kernel's log too. */
  readonly isWhole: boolean;
  /** Seconds until what is not there is late. */
  readonly waitSeconds: number;
}

/** A machine's short command gives four million characters at most; logs share most of them, packed or not. */
export const HEAD_PACKED = 1_500_000;
export const HEAD_PLAIN = 700_000;
/** Read from the end too: a last hour of a server at work. */
export const TAIL = 1_000_000;
export const TAIL_PLAIN = 500_000;

export function renderSurvey(question: SurveyQuestion): string {
  const { nonce, pids, logs, files, findsEngines, readsLogs, isWhole, waitSeconds } = question;
  const shares = Math.max(1, logs.length + (findsEngines && readsLogs ? 1 : 0));
  return [
    '{',
    `n=${nonce}; wait=${Math.round(waitSeconds * 10)}; jobs=; pids=; LC_ALL=C; export LC_ALL`,
    `most=${Math.floor(HEAD_PACKED / shares)}; plain=${Math.floor(HEAD_PLAIN / shares)}; end=${Math.floor(TAIL / shares)}; endplain=${Math.floor(TAIL_PLAIN / shares)}`,
    SURVEY_FUNCTIONS,
    'job host host',
    'job stat table stat',
    'job io heads io 300',
    'job cmd heads cmdline 2000',
    'job ports listeners',
    'job self memory self',
    ...(isWhole ? ['job gpus gpus', 'job apps apps', 'job kernel kernel'] : []),
    ...files.map(({ name, path }) => `job f${name} head -c 400 -- ${quoteShell(path)}`),
    ...logs.map(({ name, path, from }) => logJob(name, quoteShell(path), readsLogs, from)),
    ...(findsEngines ? ['job find find', 'until_done 15 find', 'read -r pids 2>/dev/null <"$d/find"', SHARE] : []),
    `for p in ${[...new Set(pids)].join(' ')} $pids; do`,
    '  case " $done " in *" $p "*) continue;; esac; done="$done $p"',
    '  job p$p process $p; job c$p head -c 16000 "/proc/$p/cmdline"',
    `  ${findsEngines ? logJob('e$p', '"/proc/$p/fd/1"', readsLogs, undefined) : ':'}`,
    'done',
    'until_done $wait $jobs',
    'for j in $jobs; do out $j; done',
    `printf '%s end 0 0\\n\\n' "$n"`,
    '}',
    '',
  ].join('\n');
}

/** Those that were found share what one log has. */
const SHARE =
  'k=0; for p in $pids; do k=$((k+1)); done; [ $k -gt 1 ] && most=$((most/k)) plain=$((plain/k)) end=$((end/k)) endplain=$((endplain/k))';

function logJob(name: string, path: string, readsLogs: boolean, from: number | undefined): string {
  const size = `job l${name} size ${path}`;
  if (from !== undefined) return `${size}; job g${name} grown ${path} ${from}`;
  return readsLogs ? `${size}; job h${name} beginning ${path}; job t${name} ending ${path}; job w${name} lines ${path}` : size;
}
