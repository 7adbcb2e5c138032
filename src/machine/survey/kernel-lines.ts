/** What the kernel's log says of ended processes and of GPUs. Pure; the lines quote names that processes choose. */

export interface KernelLine {
  readonly kind: 'oom' | 'xid';
  readonly text: string;
  /** Pids that it names. */
  readonly pids: readonly number[];
}

/** Lines kept: the last ones; a machine that runs out of memory writes many. */
const MOST = 40;

export function readKernelLines(text: string): KernelLine[] {
  return text
    .split('\n')
    .flatMap((line): KernelLine[] => {
      const said = line.trim().slice(0, 300);
      if (/NVRM: Xid/.test(said)) return [{ kind: 'xid', text: said, pids: pidsOf(said) }];
      if (/oom-kill:|Out of memory|out of memory/.test(said)) return [{ kind: 'oom', text: said, pids: pidsOf(said) }];
      return [];
    })
    .slice(-MOST);
}

/** `Killed process 4711 (python3)`, `pid=4711`, `pid 4711`. */
function pidsOf(line: string): number[] {
  return [...line.matchAll(/(?:[Pp]rocess |pid[= ]'?)(\d+)/g)].map(([, pid]) => Number(pid));
}
