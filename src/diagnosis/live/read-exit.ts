/** What an exit status says. Pure. A shell writes 128 and the signal's number, Python's multiprocessing the number below zero. */

export interface Exit {
  /** As a shell writes it; undefined = nobody saw it. */
  readonly status: number | undefined;
  readonly signal: number | undefined;
  readonly words: string;
}

const SIGNALS: Readonly<Record<number, string>> = {
  1: 'SIGHUP: the terminal or connection that it hung on was closed',
  2: 'SIGINT: someone interrupted it',
  3: 'SIGQUIT: a part of it had ended',
  6: 'SIGABRT: native code gave up, mostly NCCL or a CUDA assertion',
  7: 'SIGBUS: memory behind a file is not there, mostly a full /dev/shm',
  9: 'SIGKILL: the kernel for lack of memory, a container limit, a person, or its own parent',
  11: 'SIGSEGV: native code read an address that is not there',
  15: 'SIGTERM: someone asked it to end',
};

export function readExit(raw: number | undefined): Exit {
  if (raw === undefined)
    return { status: undefined, signal: undefined, words: 'the process is gone; nobody saw its exit status' };
  const signal = raw < 0 ? -raw : raw > 128 && raw < 193 ? raw - 128 : undefined;
  const status = signal === undefined ? raw : 128 + signal;
  const why = signal === undefined ? undefined : (SIGNALS[signal] ?? `signal ${signal}`);
  return { status, signal, words: `the process ended with exit status ${status}${why === undefined ? '' : ` (${why})`}` };
}
