/**
 * What ssh is told to run, and what is written to its stdin: one fixed text of sh for every script. Pure.
 *
 * The text holds nothing of the caller, and no newline, backslash, single quote or `!`, so that csh and fish hand it on as it is.
 * In order: it reads one line (nonce, bytes, seconds) and then the script to its end, which is the nonce: half a script runs
 * nothing. Then it says the nonce on stdout and stderr, because a login shell may have printed something before; runs the script in
 * a subshell with an empty stdin; says the nonce again, with the exit status. ssh's own status is of no use: 255 is a connection
 * that failed, or a signal.
 *
 * Two things end it with all that it has started: its stdin closes (our side is gone), or the seconds are over (our side is gone
 * and the network has not told). sshd gives every command a session of its own, so `kill -9 0` ends that and nothing else; job
 * control (`set -m`), which would give the script a process group, is not to be had without a terminal in dash before 2021.
 * Seconds of 0: nothing is ended, what the script starts outlives it.
 */

export const REMOTE_COMMAND = `exec sh -c '${[
  'read -r n l t && {',
  '{ [ $t = 0 ] || { sleep $t; kill -9 0; }; } </dev/null >/dev/null 2>&1 &',
  'exec 3<&0;',
  's=$(head -c $l <&3);',
  'case $s in *$n) ;; *) kill -9 0;; esac;',
  '{ [ $t = 0 ] || { cat <&3; kill -9 0; }; } >/dev/null 2>&1 &',
  'echo $n; echo $n >&2;',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own
  '(eval "unset n l t s;${s%$n}") 3<&- </dev/null;',
  'c=$?; echo; echo $n $c;',
  '[ $t = 0 ] || kill -9 0; }',
].join(' ')}'`;

/** Longer than it takes here to give up, so that there it is only the last resort. */
const GRACE_SECONDS = 60;

/** The script must hold no NUL: no shell can. */
export function renderInput(request: {
  readonly script: string;
  readonly nonce: string;
  readonly timeoutMs: number;
  readonly outlives: boolean;
}): Uint8Array {
  const { script, nonce } = request;
  if (script.includes('\0')) throw new Error('a script cannot hold a NUL byte');
  const body = Buffer.from(`${script}\n${nonce}`);
  const seconds = request.outlives ? 0 : Math.ceil(request.timeoutMs / 1000) + GRACE_SECONDS;
  return Buffer.concat([Buffer.from(`${nonce} ${body.length} ${seconds}\n`), body]);
}

/** Of stderr: what the script has said, without the words of ssh and the login shell before it. */
export function scriptStderr(stderr: string, nonce: string): string {
  const mark = `${nonce}\n`;
  const at = stderr.indexOf(mark);
  return at === -1 ? stderr : stderr.slice(at + mark.length);
}
