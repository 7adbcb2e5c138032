/**
 * The functions of a survey's script, in POSIX sh. Pure text.
 * `job NAME COMMAND…` runs a command by itself; `out NAME` tells what it said, with its exit status or `late`. What a job has begun is
 * not waited for when the script ends. Tables are read by one program each: a machine may have thousands of processes.
 */
import { QUERY_COMPUTE_APPS, QUERY_GPUS } from '../nvidia-smi.ts';

/** Of a packed log no more is packed: what runs of one byte would unpack to has no end. */
export const HEAD_MOST = 64 * 2 ** 20;
/** Of tables of processes; two thousand of them have less. */
const TABLE = 600_000;
/** What a log has grown by between two looks. */
const GROWN = 400_000;
/** Processes with the words of an engine in their command line that are looked into; an editor and a shell may have them too. */
const CANDIDATES = 24;

/** Exit statuses of a job that say why there is nothing. */
export const NOT_A_FILE = 3;
export const NOT_PERMITTED = 13;
export const NOT_INSTALLED = 127;

export const SURVEY_FUNCTIONS = `
d=$(mktemp -d 2>/dev/null || mktemp -d -p /dev/shm 2>/dev/null) || { printf '%s end 1 0\\n\\n' "$n"; exit 0; }
trap 'rm -rf -- "$d"' EXIT
trap 'exit 1' HUP INT TERM
has() { command -v "$1" >/dev/null 2>&1; }
soon() { if has timeout; then timeout -k 1 "$@"; else shift; "$@"; fi; }
zip=cat isplain=1
if has gzip; then zip='gzip -1c' isplain=; fi

job() {
  j=$1
  shift
  jobs="$jobs $j"
  ( "$@" >"$d/$j" 2>"$d/$j.err"; echo $? >"$d/$j.new"; mv "$d/$j.new" "$d/$j.rc" ) </dev/null >/dev/null 2>&1 &
}
until_done() { # TENTHS JOB…
  t=0 most_t=$1
  shift
  while [ $t -lt $most_t ]; do
    all=1
    for k in "$@"; do [ -e "$d/$k.rc" ] || { all=; break; }; done
    [ -n "$all" ] && return
    sleep 0.1 2>/dev/null || { sleep 1; t=$((t+9)); }
    t=$((t+1))
  done
}
out() { # JOB; logs are packed already
  s=late
  [ -e "$d/$1.rc" ] && read -r s <"$d/$1.rc"
  case $1 in h*|t*|g*) z=cat ;; *) z=$zip ;; esac
  b=$( { head -c 2000000 "$d/$1"; [ "$s" = 0 ] || head -c 1000 "$d/$1.err"; } 2>/dev/null | $z | base64 | tr -d '\\n' )
  printf '%s %s %s %s\\n%s\\n' "$n" "$1" "$s" "\${#b}" "$b"
}

host() { # a line each, also for what is not there: sandboxes have no boot_id
  date '+%s %z'
  head -n 1 /proc/uptime || echo
  head -n 1 /proc/sys/kernel/random/boot_id || echo
  id -u
  getconf PAGESIZE 2>/dev/null || echo 4096
  getconf CLK_TCK 2>/dev/null || echo 100
  readlink /proc/self/ns/pid
}
table() { cat /proc/[0-9]*/stat 2>/dev/null | head -c ${TABLE}; }
heads() { head -c "$2" -v /proc/[0-9]*/"$1" 2>/dev/null | head -c ${TABLE}; }
listeners() {
  for f in /proc/net/tcp /proc/net/tcp6; do
    [ -r $f ] && while read -r slot mine other state rest; do
      [ "$state" = 0A ] && echo "$slot $mine $other $state $rest"
    done <$f
  done
  :
}

find() { # the words stand in pieces, so that the script does not find itself
  a=sglang b=vllm c=lookalike q= w=
  heads cmdline 2000 | tr '\\000' ' ' >"$d/all"
  while IFS= read -r line; do
    case $line in
      '==> /proc/'*) q=\${line#'==> /proc/'}; q=\${q%%/*} ;;
      *$a.launch_server*|*"$a serve"*|*$a/launch_server*|*"$b serve"*|*$b.entrypoints*|*$c-engine*)
        case " $w " in *" $q "*) ;; *) w="$w $q" ;; esac ;;
    esac
  done <"$d/all"
  k=0 r=
  for q in $w; do
    k=$((k+1))
    [ $k -le ${CANDIDATES} ] && r="$r $q"
  done
  echo $r
}

memory() { # PID: its group and what limits it, of either version
  v1= v2=
  while IFS=: read -r number controllers path; do
    case ",$controllers," in ,,) v2=$path ;; *,memory,*) v1=$path ;; esac
  done <"/proc/$1/cgroup"
  cat "/proc/$1/cgroup"
  for f in events max current limit_in_bytes usage_in_bytes oom_control; do
    for r in "/sys/fs/cgroup$v2" /sys/fs/cgroup "/sys/fs/cgroup/memory$v1" /sys/fs/cgroup/memory; do
      [ -r "$r/memory.$f" ] || continue
      echo "== memory.$f"
      head -c 1000 "$r/memory.$f"
      break
    done
  done
  :
}
process() { # PID; what it chose itself stands last
  cat "/proc/$1/status"
  memory "$1"
  echo '== sockets'
  ls -l "/proc/$1/fd" 2>/dev/null | head -c 200000 | while read -r line; do
    case $line in *' socket:['*) echo "\${line##*-> }" ;; esac
  done
  echo '== stdout'
  readlink "/proc/$1/fd/1"
  :
}

size() { stat -L -c '%F|%s|%Y|%d:%i' -- "$1" && readlink -f -- "$1"; }
readable() { [ -f "$1" ] && [ -r "$1" ]; }
beginning() {
  readable "$1" || return ${NOT_A_FILE}
  if [ -n "$isplain" ]; then head -c "$plain" -- "$1"; else head -c ${HEAD_MOST} -- "$1" | gzip -1c | head -c "$most"; fi
}
ending() { # where it begins stands before it: the log may grow meanwhile
  readable "$1" || return ${NOT_A_FILE}
  s=$(stat -L -c %s -- "$1") e=$end o=0
  [ -n "$isplain" ] && e=$endplain
  [ "$s" -gt "$e" ] && o=$((s-e))
  echo "$o $s"
  tail -c +$((o+1)) -- "$1" | head -c $((s-o)) | $zip
}
lines() {
  readable "$1" || return ${NOT_A_FILE}
  soon 5 wc -lc <"$1"
}
grown() { # FILE OFFSET
  readable "$1" || return ${NOT_A_FILE}
  tail -c +$(($2+1)) -- "$1" | head -c ${GROWN} | $zip
}

smi() {
  has nvidia-smi || return ${NOT_INSTALLED}
  soon 15 nvidia-smi "$@"
}
gpus() { smi ${QUERY_GPUS.join(' ')}; }
apps() { smi ${QUERY_COMPUTE_APPS.join(' ')}; }
kernel() {
  soon 5 dmesg >"$d/ring" 2>/dev/null ||
    { has journalctl && soon 5 journalctl -k -q --no-pager -n 5000 >"$d/ring" 2>/dev/null && [ -s "$d/ring" ]; } ||
    return ${NOT_PERMITTED}
  while IFS= read -r line; do
    case $line in
      *'NVRM: Xid'*|*oom-kill*|*'Out of memory'*|*'out of memory'*) printf '%s\\n' "$line" ;;
    esac
  done <"$d/ring" | tail -c 60000
}
`;
