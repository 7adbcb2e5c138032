/**
 * Tool calls as the Hermes and Qwen templates write them and as vLLM's `hermes` parser reads them. Pure.
 *
 *   <tool_call>
 *   {"name": "look", "arguments": {"city": "Wien"}}
 *   </tool_call>
 *
 * What the parser reads the template writes again, with Python's blanks; a model that leaves them out is retokenised.
 */
import type { ToolCall } from '../../base/conversation.ts';

const CALL = /<tool_call>\n(.*?)\n<\/tool_call>/gs;

export type ParsedCall = Omit<ToolCall, 'id'>;

export function renderCalls(content: string, calls: readonly ParsedCall[]): string {
  const parts = calls.map(({ name, arguments: text }) => {
    return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${pythonJson(parsed(text))}}\n</tool_call>`;
  });
  return [...(content === '' ? [] : [content]), ...parts].join('\n');
}

/** undefined: the text calls nothing that can be read, so all of it is content. */
export function parseCalls(text: string): { readonly content: string; readonly calls: readonly ParsedCall[] } | undefined {
  const calls: ParsedCall[] = [];
  for (const [, inner = ''] of text.matchAll(CALL)) {
    const value = parsed(inner) as { readonly name?: unknown; readonly arguments?: unknown } | null;
    if (typeof value !== 'object' || typeof value?.name !== 'string') return undefined;
    calls.push({ name: value.name, arguments: pythonJson(value.arguments ?? {}) });
  }
  return calls.length === 0 ? undefined : { content: text.slice(0, text.indexOf('<tool_call>')).trimEnd(), calls };
}

/** As `json.dumps` writes it. */
function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, below]) => `${JSON.stringify(key)}: ${pythonJson(below)}`)
    .join(', ')}}`;
}

/** Arguments that are no JSON stay the text they are. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
