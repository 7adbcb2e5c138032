/** Whether a port can be listened on. The one question of the network that no table answers as well as trying. */
import { createServer } from 'node:net';
import { systemCodeOf } from '../base/errors.ts';

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
