/** Who listens on a port here: the kernel's tables, then every process whose open files may be seen; and the truth of trying. */
import { canListen } from '../../host/ports.ts';
import { listeningInodes } from '../listeners.ts';
import type { PortOwner } from '../machine.ts';
import { readAllStats, readCommand, readOpenFiles, readProc } from './proc.ts';

export async function findPortOwner(port: number): Promise<PortOwner | undefined> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readProc(`/proc/self/net/${name}`)));
  const inodes = tables.flatMap((table) => listeningInodes(table ?? '', port));
  if (inodes.length === 0) {
    const isFree = (await canListen(port)) && (await canListen(port, '::1'));
    return isFree ? undefined : { port, pid: undefined, command: '' };
  }
  const sockets = new Set(inodes.map((inode) => `socket:[${inode}]`));
  for (const stat of await readAllStats()) {
    const files = await readOpenFiles(`/proc/${stat.pid}/fd`);
    if (Array.isArray(files) && files.some((file) => sockets.has(file)))
      return { port, pid: stat.pid, command: await readCommand(stat) };
  }
  return { port, pid: undefined, command: '' };
}
