/** One line of /proc/PID/stat: what Aerie needs of it. Pure; the line comes from the kernel, its name field from anybody. */

export interface ProcessStat {
  readonly pid: number;
  /** The program's name as the kernel holds it, at most 15 bytes; a program chooses it freely. */
  readonly name: string;
  /** R running, S sleeping, D in the kernel and not to be interrupted, Z zombie, X dead, T stopped, I idle. */
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  /** Time on a CPU in clock ticks, in user code and in the kernel. */
  readonly cpuTicks: number;
  /** Clock ticks from boot to its start: with the pid and the boot it names one process for ever. */
  readonly startTicks: number;
}

/**
 * Fields as proc(5) counts them. The second, the name in parentheses, may hold spaces, newlines and parentheses itself, so the
 * others are counted from the last `)`. undefined where the text is no such line.
 */
export function parseStat(text: string): ProcessStat | undefined {
  const opening = text.indexOf('(');
  const closing = text.lastIndexOf(')');
  if (opening < 0 || closing < opening) return undefined;
  const fields = text
    .slice(closing + 2)
    .trimEnd()
    .split(' '); // fields[0] is field 3
  const number = (field: number): number => Number(fields[field - 3] ?? Number.NaN);
  const stat = {
    pid: Number.parseInt(text.slice(0, opening), 10),
    name: text.slice(opening + 1, closing),
    state: fields[0] ?? '',
    parent: number(4),
    session: number(6),
    cpuTicks: number(14) + number(15),
    startTicks: number(22),
  };
  const isWhole = [stat.pid, stat.parent, stat.session, stat.cpuTicks, stat.startTicks].every(Number.isSafeInteger);
  return isWhole && stat.state.length === 1 ? stat : undefined;
}

/** It has ended and waits to be reaped, or is on its way out. */
export function hasEnded(state: string): boolean {
  return state === 'Z' || state === 'X' || state === 'x';
}
