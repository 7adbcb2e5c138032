/** Where a server is, said once, and paths that mean something there. Pure, over the file as written. */
import { valueAt } from './explain-issue.ts';
import type { Path, Problem } from './problem.ts';

/** Absolute paths on the machine; what is relative to the run file lies here and not there. */
const PATHS_THERE = ['workdir', 'log'] as const;

export function checkMachine(file: unknown, server: Path): Problem[] {
  const at = (key: string) => valueAt(file, [...server, key]);
  const attach = at('attach');
  const isBySsh = typeof attach === 'string' && attach.startsWith('ssh://');
  if (at('machine') === undefined && !isBySsh) return [];
  return [
    ...(at('machine') !== undefined && isBySsh ? saidTwice(file, server) : []),
    ...PATHS_THERE.flatMap((key): Problem[] => {
      const path = at(key);
      if (typeof path !== 'string' || path.startsWith('/')) return [];
      const message = 'is relative to this file, which is not on that machine; write a path that begins with /';
      return [{ path: [...server, key], at: 'value', message }];
    }),
  ];
}

function saidTwice(file: unknown, server: Path): Problem[] {
  const message = `says the machine, and attach: ${String(valueAt(file, [...server, 'attach']))} says it too; leave machine: out`;
  return [{ path: [...server, 'machine'], at: 'key', message }];
}
