/**
 * A command with an environment, run through a shell. Pure. Values of the environment stand in the script, which comes on stdin,
 * and on no command line.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import type { CommandResult } from '../../host/commands.ts';
import type { ShellReply } from '../shell-wire.ts';

export interface ShellCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** A program that is not there is said on stderr with the nonce: one that is may end with 127 itself. */
export function renderRun({ file, args, env = {} }: ShellCommand, nonce: string): string {
  const program = quoteShell(file);
  return [
    ...renderExports(env),
    IS_THERE,
    `if aerie_is_there ${program}; then exec ${[program, ...args.map(quoteShell)].join(' ')} </dev/null; fi`,
    `printf '%s\\n' ${quoteShell(nonce)} >&2`,
    'exit 127',
    '',
  ].join('\n');
}

/** As the system finds a program. `command -v` names what is built into the shell too, and `exec` does not run that. */
const IS_THERE = `
aerie_is_there() {
  case $1 in */*) test -f "$1" && test -x "$1"; return ;; esac
  set -f
  IFS=:
  for aerie_at in $PATH; do
    if test -f "\${aerie_at:-.}/$1" && test -x "\${aerie_at:-.}/$1"; then return 0; fi
  done
  return 1
}`;

export function renderExports(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${quoteShell(value)}; export ${name}`);
}

/** A name that no shell can set, if there is one. */
export function findOddName(env: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(env).find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
}

export function parseRun(reply: Extract<ShellReply, { kind: 'ended' }>, nonce: string): CommandResult {
  const { code, stdout, stderr } = reply;
  if (code === 127 && stderr.includes(nonce)) return { kind: 'absent' };
  return {
    kind: 'ended',
    code,
    stdout: withoutLastNewline(new TextDecoder().decode(stdout)),
    stderr: withoutLastNewline(stderr),
  };
}

/** As `runCommand` gives it. */
function withoutLastNewline(text: string): string {
  return text.replace(/\r?\n$/, '');
}
