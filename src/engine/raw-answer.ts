/**
 * The raw text of an answer → reasoning, text and tool calls. Pure; the text is untrusted, and every step of the reading
 * goes forward, so that its time grows with the length alone.
 *
 * Promises: nothing of an answer is lost. Calls are taken out only where all of them can be read; else they stay in the
 * text as they are, which the record's flag `unparsed-call` shows (`looksLikeCall`).
 */
import type { ToolCall } from '../base/conversation.ts';
import type { AnswerFormat, CallSyntax, Marks } from './answer-format.ts';

export interface ReadAnswer {
  readonly reasoning: string;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
}

export interface RawReading {
  readonly format: AnswerFormat;
  /** The prompt that the answer goes on from: a template may have opened the reasoning, or closed it, for the model. */
  readonly prompt: string;
  /** Tools were offered; without, what looks like a call is text. */
  readonly hasTools: boolean;
}

export function readRawAnswer(raw: string, { format, prompt, hasTools }: RawReading): ReadAnswer {
  const { reasoning, text } = format.thinking === undefined ? { reasoning: '', text: raw } : split(raw, format.thinking, prompt);
  const read = hasTools && format.calls !== undefined ? readCalls(text, SYNTAXES[format.calls]) : undefined;
  return read === undefined ? { reasoning, text, toolCalls: [] } : { reasoning, ...read };
}

/**
 * Reasoning is what stands before the first closing mark, whether the answer or the prompt opened it; without a closing
 * mark an answer that was opened is reasoning to its end. The blanks at the ends of both parts go, as SGLang has it.
 */
function split(raw: string, { open, close }: Marks, prompt: string): Pick<ReadAnswer, 'reasoning' | 'text'> {
  const asked = prompt.trimEnd();
  const begun = raw.trimStart();
  const opens = begun.startsWith(open);
  if (!opens && asked.endsWith(close)) return { reasoning: '', text: raw };
  const thought = opens ? begun.slice(open.length) : raw;
  const at = thought.indexOf(close);
  if (at >= 0) return { reasoning: thought.slice(0, at).trim(), text: thought.slice(at + close.length).trim() };
  return opens || asked.endsWith(open) ? { reasoning: thought.trim(), text: '' } : { reasoning: '', text: raw };
}

interface Syntax {
  /** Around all calls of an answer; undefined: there is nothing around them. */
  readonly section: Marks | undefined;
  readonly call: Marks;
  /** What stands between the marks of one call. */
  read(body: string): Omit<ToolCall, 'id'> | ToolCall | undefined;
}

const DEEPSEEK = {
  section: { open: '<｜tool▁calls▁begin｜>', close: '<｜tool▁calls▁end｜>' },
  call: { open: '<｜tool▁call▁begin｜>', close: '<｜tool▁call▁end｜>' },
} as const;
const DEEPSEEK_SEPARATOR = '<｜tool▁sep｜>';
const FENCE = { open: '\n```json\n', close: '\n```' } as const;
const KIMI_ARGUMENTS = '<|tool_call_argument_begin|>';

const SYNTAXES: Readonly<Record<CallSyntax, Syntax>> = {
  hermes: {
    section: undefined,
    call: { open: '<tool_call>', close: '</tool_call>' },
    read(body) {
      const call = parseObject(body);
      const name = call?.['name'];
      const given = call?.['arguments'] ?? {};
      return typeof name === 'string' ? named(name, typeof given === 'string' ? given : writeJson(given)) : undefined;
    },
  },
  kimi: {
    section: { open: '<|tool_calls_section_begin|>', close: '<|tool_calls_section_end|>' },
    call: { open: '<|tool_call_begin|>', close: '<|tool_call_end|>' },
    read(body) {
      const [id = '', given, ...more] = body.split(KIMI_ARGUMENTS);
      const name = /^(?:functions\.)?([\w.-]+):\d+$/.exec(id.trim())?.[1];
      const call = more.length > 0 || name === undefined ? undefined : named(name, given);
      return call === undefined ? undefined : { id: id.trim(), ...call };
    },
  },
  'deepseek-v3': {
    ...DEEPSEEK,
    read(body) {
      const [kind = '', rest = '', ...more] = body.split(DEEPSEEK_SEPARATOR);
      const at = rest.indexOf(FENCE.open);
      const whole = rest.trimEnd();
      if (kind.trim() !== 'function' || more.length > 0 || at < 0 || !whole.endsWith(FENCE.close)) return undefined;
      return named(rest.slice(0, at).trim(), whole.slice(at + FENCE.open.length, -FENCE.close.length));
    },
  },
  'deepseek-v3.1': {
    ...DEEPSEEK,
    read(body) {
      const [name = '', given, ...more] = body.split(DEEPSEEK_SEPARATOR);
      return more.length > 0 ? undefined : named(name.trim(), given);
    },
  },
};

/** undefined: there are none, or one of them cannot be read. */
function readCalls(text: string, { section, call: mark, read }: Syntax): Pick<ReadAnswer, 'text' | 'toolCalls'> | undefined {
  const opening = section ?? mark;
  const from = text.indexOf(opening.open);
  if (from < 0) return undefined;
  const until = section === undefined ? -1 : text.indexOf(section.close, from);
  // A model may end its answer without closing the section.
  const inside = text.slice(from + (section?.open.length ?? 0), until < 0 ? undefined : until);
  const after = until < 0 ? '' : text.slice(until + (section?.close.length ?? 0));
  const toolCalls: ToolCall[] = [];
  let rest = inside.trimStart();
  while (rest.startsWith(mark.open)) {
    const end = rest.indexOf(mark.close);
    const found = end < 0 ? undefined : read(rest.slice(mark.open.length, end));
    if (found === undefined) return undefined;
    toolCalls.push({ id: `call-${toolCalls.length + 1}`, ...found });
    rest = rest.slice(end + mark.close.length).trimStart();
  }
  const said = [text.slice(0, from), rest, after].map((part) => part.trim()).filter((part) => part !== '');
  const isLeft = toolCalls.length === 0 || [rest, after].some(looksLikeCall);
  return isLeft ? undefined : { text: said.join('\n'), toolCalls };
}

/** A text that has what opens a call in one of the ways that are known: calls that nobody has taken out of it. */
export function looksLikeCall(text: string): boolean {
  return OPENINGS.some((open) => text.includes(open));
}

const OPENINGS = [...new Set(Object.values(SYNTAXES).flatMap(({ section, call }) => [section?.open ?? call.open, call.open]))];

/** Arguments are kept as they were written; what is no JSON object is no call. */
function named(name: string, given: string | undefined): Omit<ToolCall, 'id'> | undefined {
  const written = given?.trim() ?? '';
  return name === '' || parseObject(written) === undefined ? undefined : { name, arguments: written };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** undefined: nested without end, which can be read and not be written. */
function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
