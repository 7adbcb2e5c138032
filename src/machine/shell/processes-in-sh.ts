/**
 * What scripts find out about processes by themselves, in sh and coreutils. Pure: texts of functions. `/proc` is read by few
 * programs for all processes and not by some for each: a start of a program costs more than all that is read.
 */

/**
 * `aerie_table` sets aerie_rows to `PID:PARENT:SESSION:STATE …` of all processes but the kernel's own threads. A program's name may
 * hold newlines and parentheses, but not in its 15 bytes the 40 fields that follow the last `)` of a line that is whole.
 */
export const TABLE = `
aerie_nl='
'
aerie_table() {
  aerie_rows= aerie_line=
  aerie_all=$(cat /proc/[0-9]*/stat 2>/dev/null)
  set -f
  IFS=$aerie_nl
  for aerie_piece in $aerie_all; do
    aerie_line="$aerie_line $aerie_piece"
    IFS=' '
    set -- \${aerie_line##*') '}
    IFS=$aerie_nl
    test $# -ge 40 || continue
    aerie_line=\${aerie_line# }
    test "$2:$3:$4:\${21}" = 2:0:0:0 || aerie_rows="$aerie_rows \${aerie_line%% *}:$2:$4:$1"
    aerie_line=
  done
  unset IFS
  set +f
  aerie_all=
}`;

/** Files that one program is given at once where each must be looked into by the shell itself. */
const BATCH = 20;

/**
 * \`aerie_find LOOK TEST NAME…\`: those of NAME… for which TEST holds, one by one, among those batches of them for which it holds
 * together; both get what LOOK prints of the names, in aerie_seen. Sets aerie_found.
 */
export const FIND = `
aerie_find() {
  aerie_look=$1 aerie_test=$2 aerie_found=
  shift 2
  while test $# -gt 0; do
    aerie_batch= aerie_count=0
    while test $# -gt 0 && test $aerie_count -lt ${BATCH}; do
      aerie_batch="$aerie_batch $1"
      aerie_count=$((aerie_count + 1))
      shift
    done
    aerie_seen=$($aerie_look $aerie_batch 2>/dev/null)
    $aerie_test || continue
    for aerie_name in $aerie_batch; do
      aerie_seen=$($aerie_look $aerie_name 2>/dev/null)
      if $aerie_test; then aerie_found="$aerie_found $aerie_name"; fi
    done
  done
}`;

/** The kernel lets an environment be a quarter of the stack at most: 2 MiB. */
const ENVIRONMENT_BYTES = 2_097_152;

/**
 * \`aerie_carriers\` sets aerie_marked to the pids that have aerie_word in their environment. grep does it at once where it knows
 * how, which it shows by finding what it is given on stdin; else the shell looks itself. Environments hold secrets: they go
 * through pipes there, and nowhere else.
 */
export const CARRIERS = `
aerie_environment() { head -v -c ${ENVIRONMENT_BYTES} "$@" | tr '\\0' '\\n'; }
aerie_is_marked() { case "$aerie_nl$aerie_seen$aerie_nl" in *"$aerie_nl$aerie_word$aerie_nl"*) ;; *) false ;; esac; }
aerie_carriers() {
  aerie_marked=
  aerie_files=$(printf '%s\\0' "$aerie_word" | grep -lszxF -e "$aerie_word" - /proc/[0-9]*/environ 2>/dev/null)
  case $aerie_files in
    *'(standard input)'*) aerie_files=\${aerie_files#*')'} ;;
    *)
      aerie_files=
      for aerie_row in $aerie_rows; do
        if test -r "/proc/\${aerie_row%%:*}/environ"; then aerie_files="$aerie_files /proc/\${aerie_row%%:*}/environ"; fi
      done
      aerie_find aerie_environment aerie_is_marked $aerie_files
      aerie_files=$aerie_found ;;
  esac
  for aerie_file in $aerie_files; do
    aerie_file=\${aerie_file#/proc/}
    aerie_marked="$aerie_marked \${aerie_file%/environ}"
  done
}`;
