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
import { logAccess, refuseKey } from './serving/front-end.ts';
import { answerServedPath, TOKEN_PATHS } from './serving/routes.ts';
import type { Serving } from './serving/serving.ts';
import type { Shape } from './shapes.ts';

const GENERATION: ReadonlyMap<string, Shape> = new Map(
  [chatShape, completionShape, generateShape].map((shape) => [`POST ${shape.path}`, shape]),
);

const CONTROLS = '/_lookalike/';
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
  const { serving } = lookalike;
  const refusal = refuse(lookalike, path, request);
  if (serving !== undefined && !path.startsWith(CONTROLS)) logAccess(serving, request, response);
  const shape = GENERATION.get(key);
  if (refusal !== undefined) sendPlain(response, refusal);
  else if (shape !== undefined && !(shape.path === '/generate' && serving?.life.engine === 'vllm'))
    serveGeneration(lookalike, shape, body, response);
  else if (serving === undefined || TOKEN_PATHS.has(key) || path.startsWith(CONTROLS))
    sendPlain(response, ROUTES.get(key)?.(lookalike, body) ?? NOT_FOUND);
  else void sendServed(lookalike, serving, { method: request.method ?? '', path, body }, response);
}

function refuse({ serving }: Lookalike, path: string, { socket, headers }: IncomingMessage): PlainReply | undefined {
  if (!path.startsWith(CONTROLS)) return serving && refuseKey(serving, path, headers.authorization);
  return LOOPBACK.has(socket.remoteAddress) ? undefined : { status: 403, body: { detail: 'Only from this machine' } };
}

async function sendServed(
  lookalike: Lookalike,
  serving: Serving,
  request: { readonly method: string; readonly path: string; readonly body: string },
  response: ServerResponse,
): Promise<void> {
  const reply = await (answerServedPath(lookalike, serving, request) ?? NOT_FOUND);
  if (!response.destroyed) sendPlain(response, reply);
}

const NOT_FOUND: PlainReply = { status: 404, body: { detail: 'Not Found' } };

function sendPlain(response: ServerResponse, { status, body }: PlainReply): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const type = body === '' ? {} : { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' };
  response.writeHead(status, { ...type, 'content-length': String(Buffer.byteLength(text)) }).end(text);
}
