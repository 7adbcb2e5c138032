/**
 * A child process under a name of one's own choosing: what `ps` shows of it is the title, not the program.
 * Promises: it says nothing (no output), and either ends with this process, by the end of its stdin, or does not hear of it.
 */
import { spawn } from 'node:child_process';

export interface TitledStart {
  readonly file: string;
  readonly args: readonly string[];
  readonly title: string;
  /** Its stdin is a pipe that closes when this process ends, however it ends. */
  readonly endsWithUs: boolean;
}

export interface TitledProcess {
  /** undefined: there is no such program. */
  readonly pid: number | undefined;
  kill(signal: NodeJS.Signals): void;
  /** A signal's name, or the exit code. */
  onExit(act: (how: number | NodeJS.Signals) => void): void;
}

export function startTitled({ file, args, title, endsWithUs }: TitledStart): TitledProcess {
  const child = spawn(file, [...args], { argv0: title, stdio: [endsWithUs ? 'pipe' : 'ignore', 'ignore', 'ignore'] });
  child.on('error', () => undefined); // it has no pid, which says it
  child.stdin?.on('error', () => undefined); // it has ended: `onExit` tells it
  return {
    pid: child.pid,
    kill: (signal) => void child.kill(signal),
    onExit: (act) => void child.on('exit', (code, signal) => act(signal ?? code ?? 0)),
  };
}
