/** Which processes another one has started, and whether one is still there: what the kernel says in /proc. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

export function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => statOf(pid)?.parent === parent);
}

/** A zombie has ended: nobody has read its exit code yet, but it holds no memory. */
export function isAlive(pid: number): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.state !== 'Z' && stat.state !== 'X';
}

/** The name in parentheses may hold spaces and parentheses itself, so the fields are counted from the last one. */
function statOf(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined; // it has ended between two looks
  }
}

export async function until(holds: () => boolean | Promise<boolean>, withinMs = 30_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`it did not come true within ${withinMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
