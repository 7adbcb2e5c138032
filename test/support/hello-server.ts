/** A server on loopback that says hello, for whoever tries a way to a port. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** Its port; it ends with the test. */
export async function serveHello(say: (url: string) => string = () => 'hello'): Promise<number> {
  const server = createServer((request, response) => response.end(say(request.url ?? '')));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}
