/**
 * What a detached worker says to the command that started it, until it works or has failed: lines of JSON on a pipe. Pure.
 * Both are the same Aerie, and still a line is read with care: it may be cut by a kill.
 */
import { AerieError, ERRORS, type ErrorCode, type ErrorDetail } from '../../base/errors.ts';
import type { Event } from '../../base/events.ts';

export type WorkerWord =
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'event'; readonly event: Event }
  /** It holds the run and has said so. */
  | { readonly kind: 'begun' }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      readonly message: string;
      readonly detail: ErrorDetail;
      readonly stack: string;
    };

export function failedWord(error: AerieError): WorkerWord {
  const cause = error.cause ?? error;
  const stack = cause instanceof Error ? (cause.stack ?? '') : '';
  return { kind: 'failed', code: error.code, message: error.message, detail: error.detail, stack };
}

/** The worker's error as it would have been thrown here; of a bug the worker's stack is shown, not this one's. */
export function errorOfWord({ code, message, detail, stack }: Extract<WorkerWord, { kind: 'failed' }>): AerieError {
  const cause = new Error(message);
  cause.stack = stack;
  return new AerieError(code, message, detail, cause);
}

export function readWord(line: string): WorkerWord | undefined {
  try {
    const word = JSON.parse(line) as WorkerWord;
    switch (word.kind) {
      case 'note':
      case 'event':
      case 'begun':
        return word;
      case 'failed':
        return Object.hasOwn(ERRORS, word.code) ? word : undefined;
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}
