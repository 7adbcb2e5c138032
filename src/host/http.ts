/**
 * One keep-alive pool per server, made for thousands of answers that take minutes.
 * No retry and no timeout of its own: whoever sends owns the deadline, through the signal. Of a body no more is held than
 * `MOST_REPLY_BYTES`, whatever the server sends.
 *
 * Below undici's `request`: a reply is a handful of chunks and one callback here, not a stream with its promises and its
 * listeners, of which there would be thousands.
 */
import { type Dispatcher, Pool } from 'undici';
import { systemCodeOf } from '../base/errors.ts';
import { Parcel } from '../base/parcel.ts';
import { readAuthorities } from './authorities.ts';
import { type ProxyAddress, proxyFor } from './proxy-for.ts';
import { authorization, openTunnel, refusedBy, unreachable } from './proxy-way.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  /** Path below the base URL, starting with '/'. */
  readonly path: string;
  /** JSON text of the body. */
  readonly body?: string;
}

/** What came back. `transport` carries undici's or the system's code (`ECONNREFUSED`, `UND_ERR_SOCKET`, …), never message text. */
export type HttpReply =
  | {
      readonly kind: 'http';
      readonly status: number;
      readonly body: Parcel<string>;
      /** The body was longer than is held, and `body` is its beginning. */
      readonly isCut: boolean;
      readonly retryAfterMs: number;
    }
  | { readonly kind: 'transport'; readonly code: string; readonly text: string }
  | { readonly kind: 'aborted' };

export interface HttpClientOptions {
  /** e.g. `http://127.0.0.1:8000` or `https://host/base/path`. */
  readonly baseUrl: string;
  /** Most sockets to this server. */
  readonly connections: number;
  /** Sent on every request; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A way of a machine (`Reach`) leads there: no proxy, whatever the environment says. */
  readonly isDirect?: boolean;
}

export interface HttpClient {
  /** Never rejects. An abort resolves it at once. */
  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpReply>;
  close(): Promise<void>;
}

/** An answer of a million tokens with ids and log-probabilities has some 50 MB; V8's longest string is eight times this. */
export const MOST_REPLY_BYTES = 64 * 2 ** 20;

/** Without the field a proxy may compress as it likes. */
const PLAIN = { 'accept-encoding': 'identity' } as const;

/** Longer than a handshake over the slowest usable line. */
const CONNECT_MS = 10_000;

/** `env`: variables that name a proxy or authorities; left out: neither. */
export function openHttp({ baseUrl, connections, headers = {}, isDirect = false }: HttpClientOptions, env: Env = {}): HttpClient {
  const url = new URL(baseUrl);
  const way = openWay(url, isDirect ? { ...env, ...NO_PROXY } : env);
  if ('code' in way) return { send: () => Promise.resolve(way), close: () => Promise.resolve() };
  const basePath = way.pathPrefix + url.pathname.replace(/\/+$/, '');
  const plain = { ...headers, ...way.headers, ...PLAIN };
  const withJson = { ...plain, 'content-type': 'application/json' };
  const pool = new Pool(way.origin, {
    connections,
    pipelining: 1, // 1 = one request at a time on a socket; more would queue behind a long answer
    headersTimeout: 0, // a non-streaming answer sends its headers only when it is finished
    bodyTimeout: 0, // the deadline is the caller's
    keepAliveTimeout: 4_000, // shorter than uvicorn's 5 s, so that we close first and never write into a closing socket
    connect: way.connect,
  });
  return {
    send({ method, path, body }, signal) {
      return new Promise((resolve) => {
        if (signal?.aborted) return resolve({ kind: 'aborted' });
        const exchange = new Exchange(resolve, signal, way.proxy);
        pool.dispatch(
          { method, path: basePath + path, headers: body === undefined ? plain : withJson, body: body ?? null },
          exchange,
        );
      });
    },
    async close() {
      await Promise.all([pool.destroy(), way.close()]);
    },
  };
}

type Env = Readonly<Record<string, string | undefined>>;
const NO_PROXY: Env = { no_proxy: '*' };

/** Where connections lead, and what each request has more for it. */
interface Way {
  readonly origin: string;
  readonly pathPrefix: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connect: NonNullable<Pool.Options['connect']>;
  /** That is asked for plain http, and answers for itself. */
  readonly proxy?: ProxyAddress;
  close(): Promise<void>;
}

type Unusable = Extract<HttpReply, { kind: 'transport' }>;

function openWay(url: URL, env: Env): Way | Unusable {
  const choice = proxyFor(url.href, env);
  if (choice.kind === 'wrong') return { kind: 'transport', code: 'PROXY_WRONG', text: choice.because };
  const isSecure = url.protocol === 'https:';
  const through = choice.kind === 'proxy' ? choice.proxy : undefined;
  const authorities = isSecure || through?.origin.startsWith('https:') ? readAuthorities(env) : ({ kind: 'default' } as const);
  if (authorities.kind === 'unreadable') return { kind: 'transport', code: 'SSL_CERT_FILE', text: authorities.because };
  const secureContext = authorities.kind === 'more' ? authorities.context : undefined;
  const close = () => Promise.resolve();
  const direct = { timeout: CONNECT_MS, ...(secureContext === undefined ? {} : { secureContext }) };
  if (through === undefined) return { origin: url.origin, pathPrefix: '', headers: {}, connect: direct, close };
  if (isSecure) {
    const tunnel = openTunnel(through, CONNECT_MS, secureContext);
    return { origin: url.origin, pathPrefix: '', headers: {}, connect: tunnel.connect, close: () => tunnel.close() };
  }
  const headers = { host: url.host, ...authorization(through) };
  return { origin: through.origin, pathPrefix: url.origin, headers, connect: direct, proxy: through, close };
}

/** Of a connection that did not come about: that to the proxy, where one is asked. */
const WAY_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** One request until its reply, told by undici. Whatever comes after the end is passed over. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #end: (reply: HttpReply) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #proxy: ProxyAddress | undefined;
  #isOver = false;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #retryAfterMs = 0;
  /** Made with the first of them: an array as old as the request would keep them in the old heap. */
  #chunks: Buffer[] | undefined;
  #bytes = 0;

  constructor(end: (reply: HttpReply) => void, signal: AbortSignal | undefined, proxy: ProxyAddress | undefined) {
    this.#end = end;
    this.#signal = signal;
    this.#proxy = proxy;
    signal?.addEventListener('abort', this);
  }

  /** The signal's: an object that listens costs no function for each request. */
  handleEvent(): void {
    this.#settle({ kind: 'aborted' });
    this.#controller?.abort(new Error('aborted'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('aborted'));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    this.#retryAfterMs = retryAfterMs(headers['retry-after']);
    // They are views of the first chunk, in an array as old as the connection's last answer: empty, it keeps nothing.
    if (Array.isArray(controller.rawHeaders)) controller.rawHeaders.length = 0;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    this.#chunks ??= [];
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes <= MOST_REPLY_BYTES) return;
    this.#reply(true);
    controller.abort(new Error('longer than is held'));
  }

  onResponseEnd(): void {
    if (this.#proxy !== undefined && this.#status === 407) this.#fail(refusedBy(this.#proxy, 407, 'the server'));
    else this.#reply(false);
  }

  #reply(isCut: boolean): void {
    const body = new Parcel(decode(this.#chunks ?? []));
    this.#settle({ kind: 'http', status: this.#status, body, isCut, retryAfterMs: this.#retryAfterMs });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const isWay = this.#proxy !== undefined && this.#status === 0 && WAY_CODES.has(systemCodeOf(error));
    this.#fail(isWay ? unreachable(this.#proxy, error) : error);
  }

  #fail(error: Error): void {
    this.#settle({ kind: 'transport', code: systemCodeOf(error) || 'UNKNOWN', text: error.message });
  }

  #settle(reply: HttpReply): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#chunks = undefined;
    this.#signal?.removeEventListener('abort', this);
    this.#end(reply);
  }
}

/** UTF-8; bytes that are none become U+FFFD, a byte order mark is left out. */
function decode(chunks: readonly Buffer[]): string {
  const [first = Buffer.alloc(0), ...others] = chunks;
  const text = (others.length === 0 ? first : Buffer.concat(chunks)).toString('utf8');
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}

/** `Retry-After` in seconds (the date form is not used by inference servers) → milliseconds, 0 when absent. */
function retryAfterMs(header: string | string[] | undefined): number {
  const seconds = Number(Array.isArray(header) ? header[0] : header);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}
