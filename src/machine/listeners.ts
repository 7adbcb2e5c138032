/** Lines of /proc/net/tcp and tcp6: which socket listens on a port. Pure. */

/** LISTEN, as include/net/tcp_states.h numbers it. */
const LISTEN = '0A';

/** Inodes of the sockets that listen on it; the fields are `sl local_address rem_address st … inode`. */
export function listeningInodes(table: string, port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return table.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    const inode = fields[9];
    return fields[3] === LISTEN && fields[1]?.split(':')[1] === wanted && inode !== undefined ? [inode] : [];
  });
}
