/**
 * The journal: what was asked of the lookalike and what it answered, as a witness that no crash can silence.
 * A judge reads it with JSON.parse and sha256 alone.
 *
 * One line of JSON per event, one append (O_APPEND) per line, so lines of several lives and of several programs never mix and
 * survive a SIGKILL of the writer (not a power cut: nothing is fsynced). Keys, in this order:
 *
 *   event     "received" | "answered" | "aborted"
 *   at        epoch ms, real clock
 *   pid       of the lookalike
 *   life      8 hex digits, new at each start; (life, request) names one request for ever
 *   request   1, 2, 3 … in this life, over all generation paths
 *   path      "/v1/chat/completions" | "/v1/completions" | "/generate"
 *   hash      sha256 hex of JSON.stringify(input). Input of a chat: the messages, each as {role, content} in this order of keys,
 *             content a string. Of the other paths: the text, or the array of ids. Of a body that could not be read: the raw body itself
 *             is hashed (no JSON.stringify)
 *   seed      the request's seed, or null
 * received only
 *   input     what `hash` was made from; null where the body could not be read
 * answered only: written before the first byte of the answer leaves, so an answer without a line was never given
 *   status    HTTP status
 *   fault     the fault that shaped the answer ("status", "garbage", "wrong-count", "bad-ids", "empty", "slow"), or ""
 *   finish, promptIds, outputIds, textSha256   only where status is 200 and the fault is not "garbage" and there are choices:
 *             finish "stop" | "length"; ids {count, sha256 hex of JSON.stringify(ids)}, exactly the ids that were sent;
 *             sha256 hex of the text that was sent
 * aborted only: the whole answer did not leave. It may follow an "answered" line of the same request (the client went away
 *             while the answer was being sent)
 *   because   "client-gone" | "cut" | "reset"
 *
 * A request without an answered or aborted line was in flight when the lookalike died.
 */
import { openSync, writeSync } from 'node:fs';
import { sha256Hex } from '../../base/ids.ts';

/** What every line of one request says. */
export interface JournalSubject {
  readonly request: number;
  readonly path: string;
  readonly hash: string;
  readonly seed: number | null;
}

export interface JournalAnswer {
  readonly status: number;
  readonly fault: string;
  readonly sent?: {
    readonly finish: string;
    readonly promptIds: readonly number[];
    readonly outputIds: readonly number[];
    readonly text: string;
  };
}

export interface Journal {
  received(subject: JournalSubject, input: unknown): void;
  answered(subject: JournalSubject, answer: JournalAnswer): void;
  aborted(subject: JournalSubject, because: 'client-gone' | 'cut' | 'reset'): void;
}

/** '' = no journal. An append that fails or is cut short throws: a witness with gaps is none, so the program must end. */
export function openJournal(path: string, life: string, now: () => number): Journal {
  if (path === '') return { received() {}, answered() {}, aborted() {} };
  const file = openSync(path, 'a');

  function append(event: string, { request, path, hash, seed }: JournalSubject, facts: object): void {
    const line = Buffer.from(
      `${JSON.stringify({ event, at: now(), pid: process.pid, life, request, path, hash, seed, ...facts })}\n`,
    );
    const written = writeSync(file, line);
    if (written !== line.length) throw new Error(`the journal took ${written} of ${line.length} bytes of a line`);
  }

  return {
    received: (subject, input) => append('received', subject, { input }),
    aborted: (subject, because) => append('aborted', subject, { because }),
    answered(subject, { status, fault, sent }) {
      if (sent === undefined) return append('answered', subject, { status, fault });
      const { finish, promptIds, outputIds, text } = sent;
      append('answered', subject, {
        status,
        fault,
        finish,
        promptIds: fingerprint(promptIds),
        outputIds: fingerprint(outputIds),
        textSha256: sha256Hex(text),
      });
    },
  };
}

function fingerprint(ids: readonly number[]): { count: number; sha256: string } {
  return { count: ids.length, sha256: sha256Hex(JSON.stringify(ids)) };
}
