/** A server that is ready: where requests go, and what it said about itself when it became ready. */
import type { Dialect, ServerFacts } from '../engine/dialect.ts';
import type { HttpClient, HttpReply } from '../host/http.ts';
import { AerieError } from '../base/errors.ts';

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
export async function lookAtHealth(control: HttpClient, dialect: Dialect): Promise<{ ready: boolean; seen: string }> {
  const reply = await control.send(dialect.healthRequest, AbortSignal.timeout(CONTROL_TIMEOUT_MS));
  if (reply.kind === 'http') return { ready: dialect.isReady(reply.status), seen: `health answered ${reply.status}` };
  if (reply.kind === 'aborted') return { ready: false, seen: `health did not answer in ${CONTROL_TIMEOUT_MS / 1000} s` };
  return { ready: false, seen: CONNECT_WORDS[reply.code] ?? `health could not be asked: ${reply.code}` };
}

export async function readFacts(control: HttpClient, dialect: Dialect, server: string): Promise<ServerFacts> {
  const replies: { status: number; body: string }[] = [];
  for (const request of dialect.factRequests) {
    const reply: HttpReply = await control.send(request, AbortSignal.timeout(CONTROL_TIMEOUT_MS));
    if (reply.kind === 'http' && (reply.status === 401 || reply.status === 403)) {
      throw new AerieError(
        'server.rejects',
        `${server} answered ${reply.status} to ${request.path}: the key is wrong or missing.`,
        {
          remedy: 'Set api-key: $NAME for this server in the run file, and NAME in the environment. Nothing was sent to it.',
          facts: { status: reply.status },
        },
      );
    }
    replies.push(reply.kind === 'http' ? { status: reply.status, body: reply.body } : { status: 0, body: '' });
  }
  return dialect.parseFacts(replies);
}
