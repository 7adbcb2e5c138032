/**
 * A way to a shell: scripts of POSIX sh go in on stdin, bytes come out. What a machine is asked in sh (`shell-machine.ts`) does
 * not know whether the shell is here or behind ssh.
 *
 * Promises: the script stands on no command line; it is read whole before it runs, so that half a script runs nothing; it runs in
 * a shell of its own (it may `exit` and `exec`) with nothing on its stdin, and its status is told as it is; what it has started
 * ends with it when the time is up, the signal aborts or the connection drops, unless it `outlives`.
 */
export interface ShellRequest {
  readonly script: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Bytes of stdout that are kept; what comes after them is dropped. Left out: 64 MiB. */
  readonly most?: number;
  /**
   * It may run twice: where the connection is not there, or drops, the wire waits until it is back and runs it again, as long as
   * the wire was opened for; only then it is `lost`. Left out: it is sent at most once, and `lost` at once.
   */
  readonly mayRepeat?: boolean;
  /** The wire ends nothing that the script has started, nor the script: the start of a program. It is over when the script is. */
  readonly outlives?: boolean;
}

export type ShellReply =
  | { readonly kind: 'ended'; readonly code: number; readonly stdout: Uint8Array; readonly stderr: string }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }
  /** The connection dropped or never was. Whether the script ran is not known. */
  | {
      readonly kind: 'lost';
      readonly because: string;
      /** Waiting cannot help: a key, a host key, a name, an option of ssh. */
      readonly isConfiguration?: boolean;
      /** What is not there: the program that is called here, or a shell there. */
      readonly lacks?: 'ssh' | 'sh';
    };

export interface ShellWire {
  run(request: ShellRequest): Promise<ShellReply>;
}
