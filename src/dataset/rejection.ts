/**
 * Why an input row gives no prompt: a closed union, with a sentence for people. A refused row is counted, named and kept
 * out; it never stops a run.
 */
export const REJECTION_REASONS = [
  'too-long-line',
  'bad-utf8',
  'too-many-values',
  'not-json',
  'ragged-row',
  'not-an-object',
  'unknown-shape',
  'bad-tools',
  'bad-tool-call',
  'unknown-role',
  'wrong-role-order',
  'no-user-turn',
  'no-given-answer',
  'content-not-text',
  'empty-content',
  'lone-surrogate',
  'nul-character',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

export const REJECTION_SENTENCE: Readonly<Record<RejectionReason, string>> = {
  'too-long-line': 'The line, entry or field is longer than 64 MiB.',
  'bad-utf8': 'The row is not UTF-8 text.',
  'too-many-values': 'The line holds more than 2,000,000 JSON values.',
  'not-json': 'The line is not one JSON value.',
  'not-an-object': 'The line is JSON, but not an object.',
  'ragged-row': 'The row has more or fewer fields than the header.',
  'unknown-shape':
    'The row has none of the keys that hold a conversation: messages, conversations, turns, prompt, instruction; or not those of columns:.',
  'bad-tools': 'The tools of the row are not a list of function definitions with names.',
  'bad-tool-call': 'A tool call of a given answer has no name, or cannot be read.',
  'unknown-role': 'A message has a role that is not system, user, assistant or tool (or another name for one of them).',
  'wrong-role-order':
    'The messages are not: at most one system message, then user and assistant in turn, user first, tool results after the assistant that asked for them.',
  'no-user-turn': 'There is no user message to answer.',
  'no-given-answer': 'The answers to the earlier turns are missing, which turns: last needs.',
  'content-not-text': 'The content of a message is not text, nor a list of parts that are all text.',
  'empty-content': 'A message has no content, or nothing but white space.',
  'lone-surrogate': 'A message holds half of a surrogate pair, which UTF-8 cannot store.',
  'nul-character': 'A message holds the character U+0000, which tokenizers and trainers cut or refuse.',
};

/** What helps, where it is more than to correct the row. */
export const REJECTION_REMEDY: Readonly<Partial<Record<RejectionReason, string>>> = {
  'unknown-shape':
    'Name what holds the conversation in the partition, as `columns: { prompt: question }`; docs/inputs.md has every shape.',
  'content-not-text': 'Images and other parts are not supported: leave such rows out, or keep their text alone.',
  'no-given-answer': 'Use `turns: all`, which asks for every answer, or add the answers.',
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
