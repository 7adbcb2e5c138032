/**
 * Which proxy requests to an address go through, by the variables that every other program reads. Pure.
 * Promises: never for this machine itself; the name that is shown has no user and no password in it.
 */
import { isLoopback } from '../base/loopback.ts';

export interface ProxyAddress {
  /** `http://proxy.example:3128`. */
  readonly origin: string;
  /** For people: `proxy.example:3128`. */
  readonly name: string;
  /** Of the header Proxy-Authorization; '' = none. */
  readonly authorization: string;
  /** The variable that names it. */
  readonly variable: string;
}

export type ProxyChoice =
  | { readonly kind: 'direct' }
  | { readonly kind: 'proxy'; readonly proxy: ProxyAddress }
  /** A variable holds what is no proxy that can be used. */
  | { readonly kind: 'wrong'; readonly because: string };

type Env = Readonly<Record<string, string | undefined>>;

export function proxyFor(address: string, env: Env): ProxyChoice {
  const { protocol, hostname, port } = new URL(address);
  const names = protocol === 'https:' ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY'];
  const variable = names.find((name) => (env[name] ?? '') !== '');
  if (variable === undefined || isLoopback(hostname)) return { kind: 'direct' };
  const except = env['no_proxy'] || env['NO_PROXY'] || '';
  const ownPort = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
  if (except.split(/[\s,]+/).some((entry) => isExcepted(entry, hostname, ownPort))) return { kind: 'direct' };
  const proxy = parseProxy(env[variable] ?? '', variable);
  if (proxy !== undefined) return { kind: 'proxy', proxy };
  return { kind: 'wrong', because: `${variable} is no http:// or https:// address of a proxy` };
}

/** `example.com`, `.example.com` and `*.example.com` mean the host and all below it; a port binds the entry to it; `*` means all. */
function isExcepted(entry: string, hostname: string, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  const [, name = '', entryPort] = /^(\[[^\]]*\]|.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
  if (entryPort !== undefined && entryPort !== port) return false;
  const bare = name.replace(/^\*?\./, '');
  return bare !== '' && (hostname === bare || hostname.endsWith(`.${bare}`) || hostname === `[${bare}]`);
}

/** Without a scheme it is an http proxy, as for curl. */
function parseProxy(text: string, variable: string): ProxyAddress | undefined {
  const written = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(written)) return undefined;
  const url = new URL(written);
  if ((url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') return undefined;
  const [user, password] = [url.username, url.password].map(plain);
  const authorization = user === '' ? '' : `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return { origin: url.origin, name: url.host, authorization, variable };
}

function plain(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}
