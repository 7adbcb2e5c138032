/** A server that is ready: where requests go, and what it said about itself when it became ready. */

import { AerieError } from '../base/errors.ts';
import type { FoundTemplate } from '../base/prompt-template.ts';
import type { Dialect, EngineRequest, FactRequest, ServerFacts } from '../engine/dialect.ts';
import type { Clock } from '../host/host.ts';
import type { HttpClient, HttpReply } from '../host/http.ts';
import { openTimeLimit } from '../host/time-limit.ts';

export interface Endpoint {
  readonly server: string;
  readonly dialect: Dialect;
  readonly facts: ServerFacts;
  /** Of its model, where this server's prompts are rendered here; left out: none is at hand. */
  readonly template?: FoundTemplate;
  /** Id of the launch row in the ledger. */
  readonly launch: number;
  /** For turns: as many connections as the gate is wide. */
  readonly turns: HttpClient;
  /** For health, facts and detokenising: never waits behind generation. */
  readonly control: HttpClient;
  /** How often the way to its machine was lost; left out where it cannot be. */
  readonly drops?: () => number;
}

/** Longest wait for one health or facts reply: SGLang's health waits up to 20 s for its scheduler before it says 503. */
const CONTROL_TIMEOUT_MS = 25_000;

const CLOSED = 'it closed the connection without an answer; over ssh that means that nothing listens there yet';

/** What people need to know of the commonest codes; the code stays, because it is what they search for. */
const CONNECT_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'its host name is not known (ENOTFOUND)',
  EAI_AGAIN: 'its host name cannot be looked up now (EAI_AGAIN)',
  EHOSTUNREACH: 'its host cannot be reached (EHOSTUNREACH)',
  // Which of the two it is depends on a race; a forwarded port accepts for a server that does not listen.
  ECONNRESET: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  EPROTO: 'it does not speak TLS there; write http:// (EPROTO)',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS there; write http:// (ERR_SSL_WRONG_VERSION_NUMBER)',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS there; write http:// (ERR_SSL_PACKET_LENGTH_TOO_LONG)',
};

/** Waiting mends none of these. */
const CERTIFICATE_WORDS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that this machine does not know',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an authority that this machine does not know',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate comes from an authority that this machine does not know',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate comes from an authority that this machine does not know',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
};

/** What the environment says of proxies and authorities, and cannot be used. Waiting mends none of it. */
const WAY_REFUSALS: ReadonlySet<string> = new Set(['PROXY_403', 'PROXY_407', 'PROXY_WRONG', 'SSL_CERT_FILE']);

/** `isConfiguration`: it will not go away by waiting. */
export interface Look {
  readonly ready: boolean;
  readonly seen: string;
  readonly isConfiguration: boolean;
}

/** What one look at the health path saw: `ready`, or a sentence. */
export async function lookAtHealth(control: Control, { healthRequest, isReady }: Dialect, server: string): Promise<Look> {
  const reply = await ask(control, healthRequest);
  if (reply.kind === 'aborted') return notReady(`health did not answer in ${CONTROL_TIMEOUT_MS / 1000} s`);
  if (reply.kind === 'transport') {
    if (WAY_REFUSALS.has(reply.code)) throw wrongWay(server, reply.text);
    if (reply.code.startsWith('PROXY_')) return notReady(reply.text);
    const certificate = CERTIFICATE_WORDS[reply.code];
    if (certificate !== undefined) return { ready: false, seen: `${certificate} (${reply.code})`, isConfiguration: true };
    return notReady(CONNECT_WORDS[reply.code] ?? `health could not be asked: ${reply.code}`);
  }
  if (KEY_STATUSES.has(reply.status)) throw wrongKey(server, healthRequest.path, reply.status);
  if (isReady(reply.status)) return { ready: true, seen: '', isConfiguration: false };
  const hint = reply.status === 404 ? `: ${healthRequest.path} is not there; is attach: right, and is it this engine?` : '';
  return notReady(`health answered ${reply.status}${hint}`);
}

function notReady(seen: string): Look {
  return { ready: false, seen, isConfiguration: false };
}

/** What the server says about itself, or a sentence where it could not say it now: half an account is none. */
export async function readFacts(control: Control, kind: FactsKind): Promise<ServerFacts | string> {
  const { dialect, model } = kind;
  const replies: { status: number; body: string }[] = [];
  for (const request of dialect.factRequests) {
    const reply = await ask(control, request);
    if (reply.kind === 'aborted') return `${request.path} did not answer in ${CONTROL_TIMEOUT_MS / 1000} s`;
    if (reply.kind === 'transport') return notAsked(request.path, reply);
    const { status } = reply;
    refuseStatus(request, status, kind.server);
    if (LATER_STATUSES.has(status)) return `${request.path} answered ${status}`;
    replies.push({ status, body: reply.body.take() });
  }
  return dialect.parseFacts(replies, model);
}

function notAsked(path: string, { code, text }: Extract<HttpReply, { kind: 'transport' }>): string {
  if (code.startsWith('PROXY_')) return text;
  return CONNECT_WORDS[code] ?? `${path} could not be asked: ${code}`;
}

export interface FactsKind {
  readonly dialect: Dialect;
  readonly server: string;
  /** The run file's name for the model. */
  readonly model: string;
}

/** An optional account that is missing or kept to others leaves facts unknown; one that every server of its kind gives does not. */
function refuseStatus({ path, isOptional }: FactRequest, status: number, server: string): void {
  if (isOptional && (path !== '/v1/models' || status === 404)) return;
  if (KEY_STATUSES.has(status)) throw wrongKey(server, path, status);
  if (status !== 404) return;
  throw new AerieError(
    'server.rejects',
    `${server} answered 404 to ${path}: there is no such path below the address of attach:.`,
    {
      remedy: 'Correct attach: (a server behind a proxy has a base path), or engine: where this is another kind of server.',
      facts: { status },
    },
  );
}

const KEY_STATUSES: ReadonlySet<number> = new Set([401, 403]);
/** Said by a server or a proxy that may have more to say in a moment. */
const LATER_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Where to ask, and what ends the asking. */
export interface Control {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

async function ask({ client, clock, signal }: Control, request: EngineRequest): Promise<HttpReply> {
  const limit = openTimeLimit(clock, CONTROL_TIMEOUT_MS, signal);
  const reply = await client.send(request, limit.signal);
  limit.close();
  return reply;
}

function wrongKey(server: string, path: string, status: number): AerieError {
  return new AerieError('server.rejects', `${server} answered ${status} to ${path}: the key is wrong or missing.`, {
    remedy: 'Set api-key: $NAME for this server in the run file, and NAME in the environment. Nothing was sent to it.',
    facts: { status },
  });
}

function wrongWay(server: string, seen: string): AerieError {
  const remedy = seen.startsWith('SSL_CERT_FILE')
    ? 'Correct SSL_CERT_FILE in the environment, or leave it out.'
    : 'Correct HTTPS_PROXY or HTTP_PROXY in the environment (http://USER:PASSWORD@HOST:PORT), or write the host of the server into NO_PROXY.';
  return new AerieError('server.unreachable', `${server} cannot be reached: ${seen}.`, {
    remedy: `${remedy} Nothing was sent to it.`,
  });
}

/** A certificate that this machine does not believe. */
export function wrongCertificate(server: string, address: string, seen: string): AerieError {
  return new AerieError('server.unreachable', `${server} at ${address} is not to be trusted: ${seen}.`, {
    remedy:
      'Name the certificate, or that of its authority, in the environment:  NODE_EXTRA_CA_CERTS=/path/ca.pem aerie run …  (SSL_CERT_FILE is read too)\n' +
      'or write the host name that the certificate is for. Nothing was sent to it.',
    facts: { attach: address },
  });
}
