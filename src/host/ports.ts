/** Ports of this machine: what no table of the kernel answers as well as trying. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { bug, systemCodeOf } from '../base/errors.ts';

/** False only where somebody has it: an address that is not there, or a port below 1024, is no answer. */
export async function canListen(port: number, address = '127.0.0.1'): Promise<boolean> {
  const server = createServer();
  try {
    return await new Promise<boolean>((resolve) => {
      server.once('error', (thrown) => resolve(systemCodeOf(thrown) !== 'EADDRINUSE'));
      server.listen({ port, host: address, exclusive: true }, () => resolve(true));
    });
  } finally {
    server.close();
  }
}

/** A port of 127.0.0.1 that nobody listens on now. */
export async function pickPort(): Promise<number> {
  const server = createServer().listen({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw bug('a TCP server has no port');
  return address.port;
}

/** Connects to a port of 127.0.0.1 and says nothing there, until the answer is called; never throws. */
export async function knock(port: number): Promise<() => void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined); // 'close' follows
  await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', resolve));
  return () => socket.destroy();
}
