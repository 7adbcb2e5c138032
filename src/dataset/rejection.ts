/**
 * Why an input row gives no prompt: a closed union, with a sentence for people. A refused row is counted, named and kept
 * out; it never stops a run.
 */
export const REJECTION_REASONS = [
  'too-long-line',
  'bad-utf8',
  'too-many-values',
  'not-json',
  'not-an-object',
  'unknown-shape',
  'tools-not-supported',
  'tool-role',
  'unknown-role',
  'wrong-role-order',
  'no-user-turn',
  'content-not-text',
  'empty-content',
  'lone-surrogate',
  'nul-character',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

export const REJECTION_SENTENCE: Readonly<Record<RejectionReason, string>> = {
  'too-long-line': 'The line is longer than 64 MiB.',
  'bad-utf8': 'The line is not UTF-8 text.',
  'too-many-values': 'The line holds more than 2,000,000 JSON values.',
  'not-json': 'The line is not one JSON value.',
  'not-an-object': 'The line is JSON, but not an object.',
  'unknown-shape': 'The row has none of the keys that hold a conversation: messages, conversations, turns, prompt.',
  'tools-not-supported': 'The row offers or calls tools, which this version does not regenerate.',
  'tool-role': 'A message has the role of a tool, which this version does not regenerate.',
  'unknown-role': 'A message has a role that is not system, user or assistant (or human, gpt, model).',
  'wrong-role-order': 'The messages are not: at most one system message, then user and assistant in turn, user first.',
  'no-user-turn': 'There is no user message to answer.',
  'content-not-text': 'The content of a message is not one string (a list of parts, for instance).',
  'empty-content': 'A message has no content, or nothing but white space.',
  'lone-surrogate': 'A message holds half of a surrogate pair, which UTF-8 cannot store.',
  'nul-character': 'A message holds the character U+0000, which tokenizers and trainers cut or refuse.',
};

export interface Rejection {
  readonly kind: 'rejected';
  readonly reason: RejectionReason;
  /** What exactly and where in the row; safe to print. */
  readonly detail: string;
}

export function reject(reason: RejectionReason, detail: string): Rejection {
  return { kind: 'rejected', reason, detail };
}
