/**
 * The HTTP server: bodies in, routes out. Made to hold thousands of requests that wait, so every timeout of Node's is off but
 * the keep-alive one, which is uvicorn's.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chatShape } from './chat-shape.ts';
import { completionShape } from './completion-shape.ts';
import { generateShape } from './generate-shape.ts';
import { type PlainReply, ROUTES } from './routes.ts';
import { type Lookalike, serveGeneration } from './serve-generation.ts';
import type { Shape } from './shapes.ts';

const GENERATION: ReadonlyMap<string, Shape> = new Map(
  [chatShape, completionShape, generateShape].map((shape) => [`POST ${shape.path}`, shape]),
);

const LOOPBACK: ReadonlySet<string | undefined> = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);

/** uvicorn's backlog: as many connections may arrive in one instant. */
const BACKLOG = 2048;

/** Resolves with the port once connections are accepted; rejects when the address cannot be had. */
export async function listen(lookalike: Lookalike): Promise<number> {
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 5_000 }, (request, response) => {
    void readBody(request).then((body) => {
      if (body !== undefined && !response.destroyed) route(lookalike, request, body, response);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: lookalike.settings.host, port: lookalike.settings.port, backlog: BACKLOG }, resolve);
  });
  return portOf(server);
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port; // an object whenever the server listens on TCP
}

/** undefined = the client went away before its request was whole, so it was never received. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer); // no encoding is set, so chunks are Buffers
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function route(lookalike: Lookalike, request: IncomingMessage, body: string, response: ServerResponse): void {
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const key = `${request.method} ${path}`;
  const shape = GENERATION.get(key);
  if (shape === undefined) sendPlain(response, answerPlain(lookalike, key, body, request.socket.remoteAddress));
  else serveGeneration(lookalike, shape, body, response);
}

function answerPlain(lookalike: Lookalike, key: string, body: string, from: string | undefined): PlainReply {
  if (key.includes(' /_lookalike/') && !LOOPBACK.has(from)) return { status: 403, body: { detail: 'Only from this machine' } };
  return ROUTES.get(key)?.(lookalike, body) ?? { status: 404, body: { detail: 'Not Found' } };
}

function sendPlain(response: ServerResponse, { status, body }: PlainReply): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const type = body === '' ? {} : { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' };
  response.writeHead(status, { ...type, 'content-length': String(Buffer.byteLength(text)) }).end(text);
}
