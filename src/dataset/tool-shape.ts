/**
 * Tool definitions and tool calls as data sets write them → those of a prompt. Pure.
 *
 * A definition is OpenAI's `{type: "function", function: {…}}` or the bare function, which is wrapped; both may be JSON text.
 * A call is `{id, function: {name, arguments}}` or the bare `{name, arguments}`; arguments that are text stay as they are.
 * Deeper nesting than any schema has is refused: writing it out again would exhaust the stack.
 */
import type { ToolCall } from '../base/conversation.ts';
import { excerptText } from './excerpt-text.ts';
import { type Rejection, reject } from './rejection.ts';
import { isDeeperThan, isPresent, isRecord, nameType, own, type Row } from './row-value.ts';

/** JSON schemas of real tools are some ten levels deep; Node's stack holds a few thousand. */
const DEEPEST = 100;

export function parseTools(written: unknown): readonly string[] | Rejection {
  if (!isPresent(written)) return [];
  const value = fromText(written);
  const entries = isRecord(value) ? [value] : value;
  if (!Array.isArray(entries)) return reject('bad-tools', `tools is ${nameType(value)}, not a list`);
  const tools: string[] = [];
  for (const [at, entry] of (entries as readonly unknown[]).entries()) {
    const tool = fromText(entry);
    if (!isRecord(tool)) return reject('bad-tools', `tools[${at}] is ${nameType(tool)}, not an object`);
    const inner = own(tool, 'function');
    const named = isRecord(inner) ? inner : tool;
    const name = own(named, 'name');
    if (typeof name !== 'string' || name === '') return reject('bad-tools', `tools[${at}] has no name`);
    if (isDeeperThan(tool, DEEPEST)) return reject('bad-tools', `tools[${at}] is nested more than ${DEEPEST} levels deep`);
    tools.push(JSON.stringify(isRecord(inner) ? tool : { type: 'function', function: tool }));
  }
  return tools;
}

/** `place` names calls that have no id of their own, so that a result can say which it answers. */
export function parseCalls(written: unknown, place: string): readonly ToolCall[] | Rejection {
  if (!isPresent(written)) return [];
  const value = fromText(written);
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  const calls: ToolCall[] = [];
  for (const [at, entry] of entries.entries()) {
    const call = fromText(entry);
    if (!isRecord(call)) return reject('bad-tool-call', `call ${at + 1} of ${place} is ${nameType(call)}, not an object`);
    const inner = own(call, 'function');
    const named: Row = isRecord(inner) ? inner : call;
    const name = own(named, 'name');
    if (typeof name !== 'string' || name === '') return reject('bad-tool-call', `call ${at + 1} of ${place} has no name`);
    const given = own(named, 'arguments') ?? own(named, 'parameters');
    if (isDeeperThan(given, DEEPEST))
      return reject('bad-tool-call', `call ${at + 1} of ${place} has arguments nested more than ${DEEPEST} levels deep`);
    const id = own(call, 'id');
    calls.push({
      id: typeof id === 'string' && id !== '' ? id : `call-${calls.length + 1}-of-${excerptText(place, 60)}`,
      name,
      arguments: renderArguments(given),
    });
  }
  return calls;
}

function renderArguments(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '{}' : JSON.stringify(value);
}

/** What the JSON in a text means; a text that is no JSON stays one. */
function fromText(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
