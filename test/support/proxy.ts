/** A real proxy for tests: CONNECT for https, whole addresses for http, a user and a password where they are asked for. */
import { request as ask, createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { onTestFinished } from 'vitest';

export interface TestProxy {
  readonly port: number;
  /** `CONNECT gpus.example:443`, `POST http://gpu-1:30000/v1/…`, as they came. */
  readonly asked: readonly string[];
  /** What else it was told: headers of every request. */
  readonly headers: readonly string[];
}

/** `hosts`: the port of this machine that stands for each host and port. */
export async function openProxy(hosts: Readonly<Record<string, number>>, login?: string): Promise<TestProxy> {
  const [asked, headers]: [string[], string[]] = [[], []];
  const isWelcome = ({ headers: { 'proxy-authorization': given } }: IncomingMessage) =>
    login === undefined || given === `Basic ${Buffer.from(login).toString('base64')}`;
  const note = ({ method, url, rawHeaders }: IncomingMessage) => {
    asked.push(`${method} ${url}`);
    headers.push(rawHeaders.join(' '));
  };
  const server = createServer((request, reply) => {
    note(request);
    const port = URL.canParse(request.url ?? '') ? hosts[new URL(request.url ?? '').host] : undefined;
    if (!isWelcome(request) || port === undefined) return void reply.writeHead(isWelcome(request) ? 502 : 407).end();
    const { method, headers: given } = request;
    const { pathname, search } = new URL(request.url ?? '');
    const onward = ask({ port, host: '127.0.0.1', path: pathname + search, method, headers: given }, (answer) => {
      reply.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(reply);
    });
    onward.on('error', () => reply.destroy());
    request.pipe(onward);
  });
  server.on('connect', (request, socket) => {
    note(request);
    socket.on('error', () => socket.destroy()); // an asker that is refused may go before it has read why
    const port = hosts[request.url ?? ''];
    if (!isWelcome(request) || port === undefined) {
      socket.end(`HTTP/1.1 ${isWelcome(request) ? '502 Bad Gateway' : '407 Proxy Authentication Required'}\r\n\r\n`);
      return;
    }
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    for (const [one, other] of [
      [onward, socket],
      [socket, onward],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked, headers };
}
