/** What uvicorn and the front end do with any request: the key, and a line for each answer. A probe's own lines are all that moves in a dead server. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { PlainReply } from '../routes.ts';
import type { Serving } from './serving.ts';

/** `--log-level-http warning` and its like silence it. */
const SILENT = new Set(['warning', 'error', 'critical']);

export function logAccess({ life, flags }: Serving, request: IncomingMessage, response: ServerResponse): void {
  const level = flags['log-level-http'] ?? flags['uvicorn-log-level'] ?? flags['log-level'];
  if ((typeof level === 'string' && SILENT.has(level)) || flags['disable-uvicorn-access-log'] === true) return;
  const { remoteAddress = '127.0.0.1', remotePort = 0 } = request.socket; // gone once the client is
  const from = remoteAddress.replace(/^::ffff:/, '');
  response.on('finish', () => {
    const { statusCode } = response;
    const what = `${request.method} ${request.url} HTTP/${request.httpVersion}`;
    life.log(`INFO:     ${from}:${remotePort} - "${what}" ${statusCode} ${STATUS_CODES[statusCode] ?? ''}`);
  });
}

/** Paths that need no key: SGLang guards everything else, vLLM only what is below `/v1`. */
const OPEN = /^\/(health\w*|metrics)$/;

export function refuseKey({ life, flags }: Serving, path: string, authorization: string | undefined): PlainReply | undefined {
  const key = flags['api-key'];
  if (typeof key !== 'string' || key === '' || authorization === `Bearer ${key}`) return undefined;
  const isGuarded = life.engine === 'sglang' ? !OPEN.test(path) : path.startsWith('/v1/');
  return isGuarded ? { status: 401, body: { error: 'Unauthorized' } } : undefined;
}
