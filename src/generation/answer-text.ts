/**
 * Texts of answers against what their ids decode to, and the text of an answer that came in pieces. Pure.
 *
 * A piece may end inside a character. Engines then show U+FFFD, the whole character in the next piece, or nothing; only the
 * ids of all pieces together decode to what one longer request would have said.
 */

/** A truncated answer can end in half a character, which one side shows as U+FFFD and the other leaves out; stripped blanks at the ends likewise. */
export function sameText(decoded: string, text: string): boolean {
  return bare(decoded) === bare(text);
}

/** The same for a piece that goes on with an answer, and may begin inside a character. */
export function sameMoreText(decoded: string, text: string): boolean {
  const rest = decoded.replace(/^\uFFFD+/u, '');
  if (sameText(rest, text.replace(/^\uFFFD+/u, ''))) return true;
  return rest !== decoded && sameText(rest, text.replace(/^./su, ''));
}

/** `decoded`: all ids by the server's tokenizer, undefined where it cannot say. */
export function joinTexts(texts: readonly string[], decoded: string | undefined): string {
  const joined = texts.join('');
  if (decoded === undefined || sameText(decoded, joined)) return joined;
  return mendsOnlyJoints(withoutBroken(decoded), withoutBroken(joined), texts.length - 1) ? decoded : joined;
}

/** Does `decoded` hold every character of `joined` in order, and at most one more for each joint? */
function mendsOnlyJoints(decoded: readonly string[], joined: readonly string[], joints: number): boolean {
  if (decoded.length > joined.length + joints) return false;
  let at = 0;
  for (const character of decoded) if (character === joined[at]) at += 1;
  return at === joined.length;
}

/** Blanks aside: some tokenizers leave the first one of whatever they decode out. */
function withoutBroken(text: string): string[] {
  return [...text.replace(/[\uFFFD\s]/gu, '')];
}

function bare(text: string): string {
  return text.replace(/\uFFFD+$/u, '').trim();
}

export interface Split {
  readonly reasoning: string;
  readonly text: string;
}

const OPENED = /^\s*<think>/;
const CLOSED = '</think>';

/**
 * The rule by which most reasoning parsers of vLLM and SGLang split (deepseek-r1, qwen3, glm45, kimi and more): reasoning is
 * what stands before the first `</think>`, whether the answer or the prompt opened it.
 */
export function splitThinking(raw: string): Split {
  const thought = raw.replace(OPENED, '');
  const at = thought.indexOf(CLOSED);
  return at < 0 ? { reasoning: thought, text: '' } : { reasoning: thought.slice(0, at), text: thought.slice(at + CLOSED.length) };
}

/**
 * How to split an answer as its engine would have: undefined where the engine has split what it sent (`told`) otherwise than
 * the rule does, so that the rule is not its own.
 */
export function learnSplit(raw: string, told: Split): ((whole: string) => Split) | undefined {
  const ours = splitThinking(raw);
  if (!sameText(ours.reasoning, told.reasoning) || !sameText(ours.text, told.text)) return undefined;
  const strips = isStripped(ours.reasoning, told.reasoning) || isStripped(ours.text, told.text);
  return (whole) => {
    const { reasoning, text } = splitThinking(whole);
    return strips ? { reasoning: reasoning.trim(), text: text.trim() } : { reasoning, text };
  };
}

/** SGLang takes the blanks at the ends of both parts away, vLLM leaves them. */
function isStripped(raw: string, told: string): boolean {
  return /^\s/.test(raw) && !/^\s/.test(told);
}
