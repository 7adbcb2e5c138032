/**
 * Turns as a row has them → the messages of a prompt. Pure.
 *
 * The source's order must be an optional system message, then user and assistant in turn, user first, with tool results
 * after the assistant that asked for them: a conversation that breaks this was cut or merged, and its later questions answer
 * something nobody sees. A blank system message is none. Content is kept to the character.
 *
 * `turns: all`: assistant messages are left out, because the target model writes them anew; so their content is not looked
 * at. Tool results stay, in order, with the name of their tool, for the calls of the new answers.
 * `turns: last`: everything up to the last user message or tool result stays as given; what comes after it is written anew.
 */
import type { Message, ToolCall } from '../base/conversation.ts';
import { findNearest } from '../spec/nearest.ts';
import { excerptText } from './excerpt-text.ts';
import { parseContent } from './message-text.ts';
import type { Rejection } from './rejection.ts';
import { reject } from './rejection.ts';
import type { WrittenConversation, WrittenTurn } from './row-shape.ts';
import { nameType } from './row-value.ts';
import { parseCalls } from './tool-shape.ts';

/** `call`: an assistant message that is nothing but tool calls, and may follow the text that it belongs to. */
type KnownRole = 'system' | 'user' | 'assistant' | 'call' | 'tool';

/** OpenAI's names, ShareGPT's, and those of the tool data sets. Exactly as spelled: another case is another convention, worth a look. */
const ROLE_NAMES: ReadonlyMap<string, KnownRole> = new Map([
  ['system', 'system'],
  ['user', 'user'],
  ['human', 'user'],
  ['assistant', 'assistant'],
  ['gpt', 'assistant'],
  ['model', 'assistant'],
  ...['tool_call', 'function_call'].map((name) => [name, 'call'] as const),
  ...['tool', 'tool_response', 'function', 'function_response', 'observation', 'ipython'].map((name) => [name, 'tool'] as const),
]);

export interface NormalisedTurns {
  readonly kind: 'messages';
  readonly messages: readonly Message[];
}

type Mode = 'all' | 'last';

export function normaliseTurns(conversation: WrittenConversation, mode: Mode): NormalisedTurns | Rejection {
  const { turns, onlyUserTurns } = conversation;
  const last = mode === 'last' ? lastAsked(turns) : turns.length - 1;
  const gathering = new Gathering(mode);
  let before: KnownRole | undefined;
  for (const [at, turn] of turns.entries()) {
    const role = parseRole(turn);
    if (typeof role === 'object') return role;
    if (role === 'system' && isBlank(turn.content)) continue;
    if (!mayFollow(role, before, onlyUserTurns)) return wrongOrder(turn, role, before);
    before = role;
    const wrong = at <= last ? gathering.take(role, turn) : undefined;
    if (wrong !== undefined) return wrong;
  }
  return judgeWhole(gathering.messages, mode === 'last' && onlyUserTurns);
}

function wrongOrder(turn: WrittenTurn, role: KnownRole, before: KnownRole | undefined): Rejection {
  const after = before === undefined ? 'and nothing is before it' : `after ${nameRole(before)}`;
  return reject('wrong-role-order', `${turn.place} is ${nameRole(role)}, ${after}`);
}

function judgeWhole(messages: readonly Message[], needsAnswers: boolean): NormalisedTurns | Rejection {
  const users = messages.filter(({ role }) => role === 'user').length;
  if (users === 0) {
    return reject('no-user-turn', messages.length === 0 ? 'the list is empty' : 'there is only a system message');
  }
  if (needsAnswers && users > 1) return reject('no-given-answer', `there are ${users} user turns`);
  return { kind: 'messages', messages };
}

/** Place of the last turn that an answer follows. */
function lastAsked(turns: readonly WrittenTurn[]): number {
  return turns.findLastIndex(({ role }) => {
    const known = typeof role === 'string' ? ROLE_NAMES.get(role) : undefined;
    return known === 'user' || known === 'tool';
  });
}

function mayFollow(role: KnownRole, before: KnownRole | undefined, onlyUserTurns: boolean): boolean {
  switch (role) {
    case 'system':
      return before === undefined;
    case 'user':
      return onlyUserTurns || before === undefined || before === 'system' || before === 'assistant';
    case 'assistant':
      return before === 'user' || before === 'tool';
    case 'call':
      return before === 'user' || before === 'tool' || before === 'assistant' || before === 'call';
    case 'tool':
      // A call may stand inside the assistant's text, so an assistant without calls may be answered too.
      return before === 'assistant' || before === 'call' || before === 'tool';
  }
}

class Gathering {
  readonly messages: Message[] = [];
  readonly #mode: Mode;
  /** Calls of the last assistant message, and how many results came since. */
  #calls: readonly ToolCall[] = [];
  #results = 0;

  constructor(mode: Mode) {
    this.#mode = mode;
  }

  /** What is wrong with the turn, where it is looked at. */
  take(role: KnownRole, turn: WrittenTurn): Rejection | undefined {
    if (role === 'assistant' || role === 'call') return this.#takeAnswer(role, turn);
    const content = parseContent(turn.content, turn.place, role === 'tool');
    if (typeof content === 'object') return content;
    this.messages.push(role === 'tool' ? this.#resultOf(turn, content) : { role, content });
    return undefined;
  }

  #takeAnswer(role: 'assistant' | 'call', turn: WrittenTurn): Rejection | undefined {
    const calls = parseCalls(role === 'call' ? (turn.calls ?? turn.content) : turn.calls, turn.place);
    if ('kind' in calls) {
      if (this.#mode === 'last') return calls;
      this.#calls = []; // the answer is written anew: only the names of its tools are lost
      return undefined;
    }
    const isMore = role === 'call' && this.#results === 0;
    this.#calls = isMore ? [...this.#calls, ...calls] : calls;
    this.#results = 0;
    if (this.#mode === 'all') return undefined;
    const content = role === 'call' ? '' : parseContent(turn.content, turn.place, calls.length > 0);
    if (typeof content === 'object') return content;
    const before = this.messages.at(-1);
    if (role === 'call' && before?.role === 'assistant') {
      this.messages[this.messages.length - 1] = { ...before, toolCalls: [...(before.toolCalls ?? []), ...calls] };
    } else this.messages.push({ role: 'assistant', content, ...(calls.length > 0 ? { toolCalls: calls } : {}) });
    return undefined;
  }

  #resultOf({ name, toolCallId }: WrittenTurn, content: string): Message {
    const call = this.#calls.find(({ id }) => id === toolCallId) ?? this.#calls[this.#results];
    this.#results += 1;
    const known = typeof name === 'string' && name !== '' ? name : call?.name;
    // For a new answer the id is that of the new call.
    const id = this.#mode === 'all' ? undefined : typeof toolCallId === 'string' && toolCallId !== '' ? toolCallId : call?.id;
    return {
      role: 'tool',
      content,
      ...(id === undefined ? {} : { toolCallId: id }),
      ...(known === undefined ? {} : { name: known }),
    };
  }
}

function isBlank(content: unknown): boolean {
  return content === undefined || content === null || (typeof content === 'string' && content.trim() === '');
}

function nameRole(role: KnownRole): string {
  return role === 'call' ? 'a tool call' : role === 'tool' ? 'a tool result' : role;
}

function parseRole(turn: WrittenTurn): KnownRole | Rejection {
  if (typeof turn.role !== 'string') {
    return reject('unknown-role', `${turn.place} has no role: role (or from) is ${nameType(turn.role)}`);
  }
  const role = ROLE_NAMES.get(turn.role);
  if (role !== undefined) return role;
  const near = findNearest(turn.role, [...ROLE_NAMES.keys()]);
  const hint = near === undefined ? '' : `; did you mean ${near}?`;
  return reject('unknown-role', `${turn.place} has the role "${excerptText(turn.role, 40)}"${hint}`);
}
