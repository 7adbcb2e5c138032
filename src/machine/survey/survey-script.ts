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
const HEAD_PACKED = 1_500_000;
const HEAD_PLAIN = 700_000;
/** Of a packed log no more is unpacked; what runs of one byte would unpack to has no end. */
export const HEAD_MOST = 64 * 2 ** 20;
/** Read from the end too: a last hour of a server at work. */
const TAIL = 1_000_000;
const TAIL_PLAIN = 500_000;
/** What a log has grown by between two looks. */
const GROWN = 400_000;
/** Of tables of processes; two thousand of them have less. */
const TABLE = 600_000;
/** Engines on one machine that are looked into. */
export const MOST_ENGINES = 8;

export function renderSurvey(question: SurveyQuestion): string {
  const { nonce, pids, logs, files, findsEngines, readsLogs, isWhole, waitSeconds } = question;
  const shares = Math.max(1, logs.length + (findsEngines && readsLogs ? 1 : 0));
  return [
    '{',
    `n=${nonce}; wait=${Math.round(waitSeconds * 10)}; jobs=; pids=; LC_ALL=C; export LC_ALL`,
    `most=${Math.floor(HEAD_PACKED / shares)}; plain=${Math.floor(HEAD_PLAIN / shares)}; end=${Math.floor(TAIL / shares)}; endplain=${Math.floor(TAIL_PLAIN / shares)}`,
    ...HELPERS,
    'job host host',
    'job stat table stat',
    'job io heads io 300',
    'job cmd heads cmdline 2000',
    'job ports listeners',
    'job self memory self',
    ...(isWhole ? ['job gpus gpus', 'job apps apps', 'job kernel kernel'] : []),
    ...files.map(({ name, path }) => `job f${name} head -c 400 -- ${quoteShell(path)}`),
    ...logs.map(({ name, path, from }) => logJob(name, quoteShell(path), readsLogs, from)),
    ...(findsEngines ? ['job find find', 'until_done 15 find', 'read -r pids 2>/dev/null <"$d/find"'] : []),
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

function logJob(name: string, path: string, readsLogs: boolean, from: number | undefined): string {
  const size = `job l${name} size ${path}`;
  if (from !== undefined) return `${size}; job g${name} grown ${path} ${from}`;
  return readsLogs ? `${size}; job h${name} beginning ${path}; job t${name} ending ${path}; job w${name} lines ${path}` : size;
}

/**
 * `job NAME COMMAND…` runs it by itself; `out NAME` tells what it said, with its exit status or `late`. What a job has begun is not
 * waited for when the script ends. Tables are read by one program each: a machine may have thousands of processes.
 */
const HELPERS = [
  'd=$(mktemp -d 2>/dev/null || mktemp -d -p /dev/shm 2>/dev/null) || { printf "%s end 1 0\\n\\n" "$n"; exit 0; }',
  `trap 'rm -rf -- "$d"' EXIT; trap 'exit 1' HUP INT TERM`,
  'has() { command -v "$1" >/dev/null 2>&1; }',
  'zip=cat; isplain=1; if has gzip; then zip="gzip -1c"; isplain=; fi',
  'soon() { if has timeout; then timeout -k 1 "$@"; else shift; "$@"; fi; }',
  'job() { j=$1; shift; jobs="$jobs $j"; ( "$@" >"$d/$j" 2>"$d/$j.err"; echo $? >"$d/$j.new"; mv "$d/$j.new" "$d/$j.rc" ) </dev/null >/dev/null 2>&1 & }',
  'until_done() { i=0; most_i=$1; shift; while [ $i -lt $most_i ]; do all=1; for k in "$@"; do [ -e "$d/$k.rc" ] || { all=; break; }; done; [ -n "$all" ] && return; sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }; i=$((i+1)); done; }',
  'out() { s=late; [ -e "$d/$1.rc" ] && read -r s <"$d/$1.rc"; z=$zip; case $1 in h*|t*|g*) z=cat;; esac',
  '  b=$( { head -c 2000000 "$d/$1"; case $s in 0) ;; *) head -c 1000 "$d/$1.err";; esac; } 2>/dev/null | $z | base64 | tr -d "\\n" )',
  '  printf "%s %s %s %s\\n%s\\n" "$n" "$1" "$s" "${#b}" "$b"; }',
  'host() { date "+%s %z"; head -n 1 /proc/uptime; head -n 1 /proc/sys/kernel/random/boot_id; id -u; getconf PAGESIZE 2>/dev/null || echo 4096; getconf CLK_TCK 2>/dev/null || echo 100; readlink /proc/self/ns/pid; }',
  `table() { cat /proc/[0-9]*/stat 2>/dev/null | head -c ${TABLE}; }`,
  `heads() { head -c "$2" -v /proc/[0-9]*/"$1" 2>/dev/null | head -c ${TABLE}; }`,
  'listeners() { for t in /proc/net/tcp /proc/net/tcp6; do [ -r $t ] && while read -r a l r s rest; do [ "$s" = 0A ] && echo "$a $l $r $s $rest"; done <$t; done; :; }',
  // The words stand in pieces, so that the script does not find itself.
  'find() { a=sglang; b=vllm; c=lookalike; q=; heads cmdline 2000 | tr "\\000" " " >"$d/all"; while IFS= read -r line; do case $line in "==> /proc/"*) q=${line#"==> /proc/"}; q=${q%%/*};; *$a.launch_server*|*"$a serve"*|*$a/launch_server*|*"$b serve"*|*$b.entrypoints*|*$c-engine*) case " $w " in *" $q "*) ;; *) w="$w $q";; esac;; esac; done <"$d/all"; set -- $w; r=; k=0; for q in "$@"; do [ "$q" = "$$" ] && continue; k=$((k+1)); [ $k -le 24 ] && r="$r $q"; done; echo $r; }',
  'memory() { v1=; v2=; while IFS=: read -r h c q; do case ",$c," in ,,) v2=$q;; *,memory,*) v1=$q;; esac; done <"/proc/$1/cgroup"; cat "/proc/$1/cgroup"; for f in events events.local max current peak high limit_in_bytes usage_in_bytes oom_control; do for r in "/sys/fs/cgroup$v2" /sys/fs/cgroup "/sys/fs/cgroup/memory$v1" /sys/fs/cgroup/memory; do [ -r "$r/memory.$f" ] && { echo "== memory.$f"; head -c 1000 "$r/memory.$f"; break; }; done; done; :; }',
  'process() { cat "/proc/$1/status"; memory "$1"; echo "== sockets"; ls -l "/proc/$1/fd" 2>/dev/null | head -c 200000 | while read -r line; do case $line in *" socket:["*) echo "${line##*-> }";; esac; done; echo "== stdout"; readlink "/proc/$1/fd/1"; :; }',
  'size() { stat -L -c "%F|%s|%Y|%d:%i" -- "$1" && readlink -f -- "$1"; }',
  'plainfile() { [ -f "$1" ] && [ -r "$1" ]; }',
  `beginning() { plainfile "$1" || return 3; if [ -n "$isplain" ]; then head -c "$plain" -- "$1"; else head -c ${HEAD_MOST} -- "$1" | gzip -1c | head -c "$most"; fi; }`,
  // Where it begins and ends stands before it: a log may grow meanwhile.
  'ending() { plainfile "$1" || return 3; s=$(stat -L -c %s -- "$1"); e=$end; [ -n "$isplain" ] && e=$endplain; o=0; [ "$s" -gt "$e" ] && o=$((s-e)); echo "$o $s"; tail -c +$((o+1)) -- "$1" | head -c $((s-o)) | $zip; }',
  'lines() { plainfile "$1" || return 3; soon 5 wc -lc <"$1"; }',
  `grown() { plainfile "$1" || return 3; tail -c +$(($2+1)) -- "$1" | head -c ${GROWN} | $zip; }`,
  'gpus() { has nvidia-smi || return 127; soon 15 nvidia-smi --query-gpu=index,uuid,memory.used,memory.total,utilization.gpu,name --format=csv,noheader,nounits; }',
  'apps() { has nvidia-smi || return 127; soon 15 nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv,noheader,nounits; }',
  'kernel() { if soon 5 dmesg >"$d/ring" 2>/dev/null || { has journalctl && soon 5 journalctl -k -q --no-pager -n 5000 >"$d/ring" 2>/dev/null && [ -s "$d/ring" ]; }; then while IFS= read -r line; do case $line in *"NVRM: Xid"*|*oom-kill*|*"Out of memory"*|*"out of memory"*|*"invoked oom"*) printf "%s\\n" "$line";; esac; done <"$d/ring" | tail -c 60000; else return 13; fi; }',
];
