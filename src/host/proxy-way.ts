/**
 * The way through a proxy: CONNECT for https, and TLS inside of it with the server itself; for plain http the proxy is given whole
 * addresses, as it wants them.
 * On failure: an error with a code of its own and words that name the proxy, for `HttpReply`.
 */
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector, Pool } from 'undici';
import { systemCodeOf } from '../base/errors.ts';
import type { ProxyAddress } from './proxy-for.ts';

/** A refusal by its status (`PROXY_407`), or that there is no way to the proxy itself (`PROXY_UNREACHABLE`). */
export class ProxyError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export interface Tunnel {
  readonly connect: buildConnector.connector;
  close(): Promise<void>;
}

/** `secureContext`: the authorities that are believed, where they are not Node's own. */
export function openTunnel(proxy: ProxyAddress, timeoutMs: number, secureContext: SecureContext | undefined): Tunnel {
  const trusted = secureContext === undefined ? {} : { secureContext };
  const asker = new Pool(proxy.origin, { connect: { timeout: timeoutMs, ...trusted }, headersTimeout: timeoutMs });
  const secure = buildConnector({ timeout: timeoutMs, ...trusted });
  const open = async ({ hostname, port, protocol }: buildConnector.Options): Promise<Socket> => {
    const path = `${hostname}:${port === '' ? (protocol === 'https:' ? '443' : '80') : port}`;
    const reply = await asker.connect({ path, headers: { host: path, ...authorization(proxy) } }).catch((thrown: unknown) => {
      throw unreachable(proxy, thrown);
    });
    if (reply.statusCode === 200) return reply.socket as Socket;
    reply.socket.on('error', () => undefined).destroy();
    throw refusedBy(proxy, reply.statusCode, path);
  };
  return {
    connect(options, callback) {
      open(options).then(
        (socket) => secure({ ...options, httpSocket: socket }, callback),
        (thrown: unknown) => callback(thrown instanceof Error ? thrown : new Error(String(thrown)), null),
      );
    },
    close: () => asker.destroy(),
  };
}

export function authorization({ authorization: value }: ProxyAddress): Readonly<Record<string, string>> {
  return value === '' ? {} : { 'proxy-authorization': value };
}

export function refusedBy({ name }: ProxyAddress, status: number, to: string): ProxyError {
  const because = status === 407 ? ': the user and password of the proxy are wrong or missing' : '';
  return new ProxyError(`PROXY_${status}`, `the proxy ${name} answered ${status} to the way to ${to}${because}`);
}

export function unreachable({ name }: ProxyAddress, thrown: unknown): ProxyError {
  const code = systemCodeOf(thrown) || 'UNKNOWN';
  return new ProxyError('PROXY_UNREACHABLE', `the proxy ${name} cannot be reached (${code})`);
}
