/**
 * Turns as a row has them → the messages of a prompt: [system?, user, user, …]. Pure.
 *
 * The source's order must be an optional system message, then user and assistant in turn, user first: a conversation that
 * breaks this was cut or merged, and its later questions answer something nobody sees. Assistant messages are then left
 * out, because the target model writes them anew; so their content is not looked at. Content is kept to the character.
 */
import type { Message } from '../base/conversation.ts';
import { findNearest } from '../spec/nearest.ts';
import { excerptText } from './excerpt-text.ts';
import type { Rejection } from './rejection.ts';
import { reject } from './rejection.ts';
import type { WrittenConversation, WrittenTurn } from './row-shape.ts';
import { nameType } from './row-shape.ts';

type KnownRole = 'system' | 'user' | 'assistant';

/** OpenAI's names and ShareGPT's. Exactly as spelled: another case is another convention, worth a look. */
const ROLE_NAMES: ReadonlyMap<string, KnownRole | 'tool'> = new Map([
  ['system', 'system'],
  ['user', 'user'],
  ['human', 'user'],
  ['assistant', 'assistant'],
  ['gpt', 'assistant'],
  ['model', 'assistant'],
  ...['tool', 'tool_call', 'tool_response', 'function', 'function_call', 'function_response', 'observation', 'ipython'].map(
    (name) => [name, 'tool'] as const,
  ),
]);

/** Half a surrogate pair; `isWellFormed()` says the same and is seven times as fast, but the library types of es2023 lack it. */
const HALF_PAIR = /\p{Surrogate}/u;

export interface NormalisedTurns {
  readonly kind: 'messages';
  readonly messages: readonly Message[];
}

export function normaliseTurns(conversation: WrittenConversation): NormalisedTurns | Rejection {
  const messages: Message[] = [];
  let before: KnownRole | undefined;
  for (const turn of conversation.turns) {
    const role = parseRole(turn);
    if (typeof role === 'object') return role;
    if (!mayFollow(role, before, conversation.onlyUserTurns)) {
      return reject(
        'wrong-role-order',
        `${turn.place} is ${role}, ${before === undefined ? 'and nothing is before it' : `after ${before}`}`,
      );
    }
    before = role;
    if (role === 'assistant') continue;
    const content = parseContent(turn);
    if (typeof content === 'object') return content;
    messages.push({ role, content });
  }
  if (!messages.some((message) => message.role === 'user')) {
    return reject('no-user-turn', conversation.turns.length === 0 ? 'the list is empty' : 'there is only a system message');
  }
  return { kind: 'messages', messages };
}

function mayFollow(role: KnownRole, before: KnownRole | undefined, onlyUserTurns: boolean): boolean {
  if (role === 'system') return before === undefined;
  if (role === 'assistant') return before === 'user';
  return before !== 'user' || onlyUserTurns;
}

function parseRole(turn: WrittenTurn): KnownRole | Rejection {
  if (typeof turn.role !== 'string') {
    return reject('unknown-role', `${turn.place} has no role: role (or from) is ${nameType(turn.role)}`);
  }
  const role = ROLE_NAMES.get(turn.role);
  if (role === 'tool') return reject('tool-role', `${turn.place} has the role ${turn.role}`);
  if (turn.callsTools) return reject('tools-not-supported', `${turn.place} calls a tool`);
  if (role !== undefined) return role;
  const near = findNearest(turn.role, [...ROLE_NAMES.keys()]);
  const hint = near === undefined ? '' : `; did you mean ${near}?`;
  return reject('unknown-role', `${turn.place} has the role "${excerptText(turn.role, 40)}"${hint}`);
}

function parseContent({ content, place }: WrittenTurn): string | Rejection {
  if (content === undefined || content === null) return reject('empty-content', `${place} has no content`);
  if (typeof content !== 'string') return reject('content-not-text', `${place} is ${nameType(content)}, not a string`);
  if (content.trim() === '') {
    return reject(
      'empty-content',
      content === '' ? `${place} is empty` : `${place} is ${content.length} characters of white space`,
    );
  }
  if (HALF_PAIR.test(content)) return reject('lone-surrogate', `${place}, at character ${content.search(HALF_PAIR) + 1}`);
  if (content.includes('\0')) return reject('nul-character', `${place}, at character ${content.indexOf('\0') + 1}`);
  return content;
}
