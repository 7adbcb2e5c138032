/** What stands before an engine in real places: a proxy with a base path, TLS, a key; it hands on what comes through. */
import { request as ask, createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { SelfSigned } from './self-signed.ts';

export interface FrontDoorOptions {
  readonly to: number;
  /** Only what lies below it is handed on, without it. */
  readonly basePath?: string;
  readonly tls?: SelfSigned;
  /** undefined: hand on; a number: that status, with no look at the engine. */
  readonly refuse?: (path: string, authorization: string | undefined) => number | undefined;
}

export interface FrontDoor {
  readonly port: number;
  /** Paths asked for, in order, as they came. */
  readonly asked: readonly string[];
}

export async function openFrontDoor({ to, basePath = '', tls, refuse = () => undefined }: FrontDoorOptions): Promise<FrontDoor> {
  const asked: string[] = [];
  const handle = (request: IncomingMessage, reply: ServerResponse) => {
    const path = request.url ?? '';
    asked.push(path);
    const status = path.startsWith(basePath) ? refuse(path.slice(basePath.length), request.headers.authorization) : 404;
    if (status !== undefined) {
      request.resume();
      reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ detail: `the door says ${status}` }));
      return;
    }
    const { method, headers } = request;
    const onward = ask({ port: to, host: '127.0.0.1', path: path.slice(basePath.length), method, headers }, (answer) => {
      reply.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(reply);
    });
    onward.on('error', () => reply.destroy());
    request.pipe(onward);
  };
  const server = tls === undefined ? createPlain(handle) : createTls({ key: tls.key, cert: tls.cert }, handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked };
}
