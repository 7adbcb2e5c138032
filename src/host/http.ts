/**
 * One keep-alive pool per server, made for thousands of answers that take minutes.
 * No retry and no timeout of its own: whoever sends owns the deadline, through the signal.
 */
import { Pool } from 'undici';
import { systemCodeOf } from '../base/errors.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  /** Path below the base URL, starting with '/'. */
  readonly path: string;
  /** JSON text of the body. */
  readonly body?: string;
}

/** What came back. `transport` carries undici's or the system's code (`ECONNREFUSED`, `UND_ERR_SOCKET`, …), never message text. */
export type HttpReply =
  | { readonly kind: 'http'; readonly status: number; readonly body: string; readonly retryAfterMs: number }
  | { readonly kind: 'transport'; readonly code: string; readonly text: string }
  | { readonly kind: 'aborted' };

export interface HttpClientOptions {
  /** e.g. `http://127.0.0.1:8000` or `https://host/base/path`. */
  readonly baseUrl: string;
  /** Most sockets to this server. */
  readonly connections: number;
  /** Sent on every request; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HttpClient {
  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpReply>;
  close(): Promise<void>;
}

export function openHttp(options: HttpClientOptions): HttpClient {
  const url = new URL(options.baseUrl);
  const basePath = url.pathname.replace(/\/+$/, '');
  const pool = new Pool(url.origin, {
    connections: options.connections,
    pipelining: 1, // 1 = one request at a time on a socket; more would queue behind a long answer
    headersTimeout: 0, // a non-streaming answer sends its headers only when it is finished
    bodyTimeout: 0, // the deadline is the caller's
    keepAliveTimeout: 4_000, // shorter than uvicorn's 5 s, so that we close first and never write into a closing socket
    connect: { timeout: 10_000 },
  });
  return {
    async send(request, signal) {
      try {
        const reply = await pool.request({
          method: request.method,
          path: basePath + request.path,
          headers: { ...options.headers, ...(request.body === undefined ? {} : { 'content-type': 'application/json' }) },
          ...(request.body === undefined ? {} : { body: request.body }),
          ...(signal === undefined ? {} : { signal }),
        });
        const body = await reply.body.text();
        return { kind: 'http', status: reply.statusCode, body, retryAfterMs: retryAfterMs(reply.headers['retry-after']) };
      } catch (thrown) {
        if (signal?.aborted) return { kind: 'aborted' };
        return {
          kind: 'transport',
          code: systemCodeOf(thrown) || 'UNKNOWN',
          text: thrown instanceof Error ? thrown.message : String(thrown),
        };
      }
    },
    async close() {
      await pool.destroy();
    },
  };
}

/** `Retry-After` in seconds (the date form is not used by inference servers) → milliseconds, 0 when absent. */
function retryAfterMs(header: string | string[] | undefined): number {
  const seconds = Number(Array.isArray(header) ? header[0] : header);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}
