/** A process that Aerie started as a server, or found again: what `KeptServer` needs of it, whatever started it. */
import type { Reach } from '../machine/machine.ts';

export interface LaunchedProcess {
  readonly pid: number;
  readonly logPath: string;
  /** How it ended, in words, once it has: `exit code 1`, `signal SIGKILL`, `hung while loading weights`. Never rejects. */
  readonly exited: Promise<string>;
  /** Resolves with the base URL once something listens there, or undefined when the process ended before. */
  listening(signal: AbortSignal): Promise<string | undefined>;
  /** The way to it, where it runs on another machine. */
  readonly reach?: Reach;
  /** This worker ends: the embedded engine is stopped with it, a GPU server goes on and is found again. */
  leave(): Promise<'stopped' | 'running'>;
}
