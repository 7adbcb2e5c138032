/**
 * Child processes that are servers: their output goes to a file, their stdin is a pipe held open as a lifeline
 * (a program that exits when its stdin closes leaves no orphan when Aerie is killed).
 */
import { open } from 'node:fs/promises';

export interface StartRequest {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** stdout and stderr are appended here. */
  readonly logPath: string;
  readonly workFolder: string;
}

export interface ProcessExit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
}

export interface ServerProcess {
  readonly pid: number;
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<ProcessExit>;
  /** Asks politely (SIGTERM), then SIGKILL after `graceMs`. Resolves when it has ended. */
  stop(graceMs: number): Promise<void>;
}

export async function startProcess(request: StartRequest): Promise<ServerProcess> {
  const { execa } = await import('execa');
  const log = await open(request.logPath, 'a');
  const child = execa(request.file, [...request.args], {
    env: request.env,
    cwd: request.workFolder,
    stdin: 'pipe',
    stdout: log.fd as unknown as 'inherit',
    stderr: log.fd as unknown as 'inherit',
    detached: true, // its own process group: Ctrl-C at the terminal reaches Aerie alone, which drains first
    reject: false,
    cleanup: true,
    buffer: false,
  });
  const exited = child.then((result) => ({ code: result.exitCode, signal: result.signal })).finally(() => void log.close());
  const pid = child.pid;
  if (pid === undefined) {
    const result = await child;
    throw result.cause ?? new Error(`${request.file} did not start`);
  }
  child.stdin?.on('error', () => undefined); // EPIPE when the child has died: `exited` tells it
  return {
    pid,
    exited,
    async stop(graceMs) {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(timer);
    },
  };
}
