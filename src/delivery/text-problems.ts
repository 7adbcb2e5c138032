/**
 * What makes a message's text unfit for a trainer, as data. Pure. Export leaves such rows out and check reports them, by
 * the same functions, so that the two can never disagree.
 */

export const TEXT_PROBLEMS = ['empty-content', 'think-marker', 'unpaired-surrogate', 'nul-character'] as const;
export type TextProblem = (typeof TEXT_PROBLEMS)[number];

/** Half of a UTF-16 pair without the other half: not text in any encoding, and Arrow's JSON reader stops at it. */
const UNPAIRED_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;
const NUL = '\u0000';
/** Blank as Python's `str.strip` sees it: JavaScript's whitespace, and the separators and NEL that only Python strips. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these control characters are exactly what is meant
const BLANK = /^[\s\u001c-\u001f\u0085]*$/;
const THINK_MARKER = /<\/?think>/i;

export function isBlank(text: string): boolean {
  return BLANK.test(text);
}

export function hasThinkMarker(text: string): boolean {
  return THINK_MARKER.test(text);
}

export function hasUnpairedSurrogate(text: string): boolean {
  return UNPAIRED_SURROGATE.test(text);
}

export function hasNul(text: string): boolean {
  return text.includes(NUL);
}

/** Text that every JSON reader takes: what is not text becomes U+FFFD. */
export function replaceUnfit(text: string): string {
  return text.replace(new RegExp(UNPAIRED_SURROGATE, 'g'), '\uFFFD').replaceAll(NUL, '\uFFFD');
}

/** The first reason against `content` as a message of the prompt. A person may write about `<think>`. */
export function promptProblem(content: string): TextProblem | undefined {
  return isBlank(content) ? 'empty-content' : textProblem(content);
}

/** The first reason against `content` as an answer, where `<think>` is a remnant of reasoning that nobody split off. */
export function answerProblem(content: string): TextProblem | undefined {
  return isBlank(content) ? 'empty-content' : reasoningProblem(content);
}

/** Like an answer, but it may be empty. */
export function reasoningProblem(content: string): TextProblem | undefined {
  return hasThinkMarker(content) ? 'think-marker' : textProblem(content);
}

/** The first reason against any text at all; it may be empty. */
export function textProblem(content: string): TextProblem | undefined {
  if (hasUnpairedSurrogate(content)) return 'unpaired-surrogate';
  return hasNul(content) ? 'nul-character' : undefined;
}
