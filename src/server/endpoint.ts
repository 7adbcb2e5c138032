/** A server that is ready: where requests go, and what it said about itself when it became ready. */

import { AerieError } from '../base/errors.ts';
import type { Dialect, EngineRequest, ServerFacts } from '../engine/dialect.ts';
import type { Clock } from '../host/host.ts';
import type { HttpClient, HttpReply } from '../host/http.ts';
import { openTimeLimit } from '../host/time-limit.ts';

export interface Endpoint {
  readonly server: string;
  readonly dialect: Dialect;
  readonly facts: ServerFacts;
  /** Id of the launch row in the ledger. */
  readonly launch: number;
  /** For turns: as many connections as the gate is wide. */
  readonly turns: HttpClient;
  /** For health, facts and detokenising: never waits behind generation. */
  readonly control: HttpClient;
}

/** Longest wait for one health or facts reply: both are answered from memory; a busy event loop may take seconds. */
const CONTROL_TIMEOUT_MS = 10_000;

/** What people need to know of the commonest codes; the code stays, because it is what they search for. */
const CONNECT_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'its host name is not known (ENOTFOUND)',
  EAI_AGAIN: 'its host name cannot be looked up now (EAI_AGAIN)',
  EHOSTUNREACH: 'its host cannot be reached (EHOSTUNREACH)',
  ECONNRESET: 'it closed the connection (ECONNRESET)',
};

/** What one look at the health path saw: `ready`, or a sentence. */
export async function lookAtHealth(control: Control, dialect: Dialect): Promise<{ ready: boolean; seen: string }> {
  const reply = await ask(control, dialect.healthRequest);
  if (reply.kind === 'http') return { ready: dialect.isReady(reply.status), seen: `health answered ${reply.status}` };
  if (reply.kind === 'aborted') return { ready: false, seen: `health did not answer in ${CONTROL_TIMEOUT_MS / 1000} s` };
  return { ready: false, seen: CONNECT_WORDS[reply.code] ?? `health could not be asked: ${reply.code}` };
}

/** What the server says about itself, or a sentence where it could not say it now: half an account is none. */
export async function readFacts(control: Control, dialect: Dialect, server: string): Promise<ServerFacts | string> {
  const replies: { status: number; body: string }[] = [];
  for (const request of dialect.factRequests) {
    const reply = await ask(control, request);
    if (reply.kind === 'aborted') return `${request.path} did not answer in ${CONTROL_TIMEOUT_MS / 1000} s`;
    if (reply.kind === 'transport') return CONNECT_WORDS[reply.code] ?? `${request.path} could not be asked: ${reply.code}`;
    const { status, body } = reply;
    if (KEY_STATUSES.has(status)) throw wrongKey(server, request.path, status);
    if (LATER_STATUSES.has(status)) return `${request.path} answered ${status}`;
    replies.push({ status, body });
  }
  return dialect.parseFacts(replies);
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
