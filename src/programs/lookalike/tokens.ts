/**
 * The lookalike's tokenizer and chat template: one id for each UTF-8 byte, and five specials.
 *
 *   0 <|end|>   1 <|user|>   2 <|assistant|>   3…258 the bytes 0…255   259 <|system|>   260 <|tool|>
 *
 * A message is `<|role|>\n content <|end|>`, and a request for an answer ends in `<|assistant|>\n`; so the prompt ids of
 * turn k+1 begin with the prompt ids and the output ids of turn k, whether or not that answer ended with the stop id.
 * Tool calls stand in an answer's text (`tool-calls.ts`), definitions of tools behind the system message.
 * The text of a message never turns into a special (`"<|end|>"` is seven bytes), so encode → decode gives back any text exactly.
 */
import type { Message, Role } from '../../base/conversation.ts';
import { sha256Hex } from '../../base/ids.ts';
import { renderCalls } from './tool-calls.ts';

export const STOP_ID = 0;
export const VOCABULARY_SIZE = 261;
const FIRST_BYTE_ID = 3;
const FIRST_ID_AFTER_BYTES = FIRST_BYTE_ID + 256;
const NEWLINE = 0x0a;

const ROLE_ID: Readonly<Record<Role, number>> = { user: 1, assistant: 2, system: 259, tool: 260 };
const SPECIAL_TEXT: ReadonlyMap<number, string> = new Map([
  [STOP_ID, '<|end|>'],
  [ROLE_ID.user, '<|user|>'],
  [ROLE_ID.assistant, '<|assistant|>'],
  [ROLE_ID.system, '<|system|>'],
  [ROLE_ID.tool, '<|tool|>'],
]);

/** Changes when the template does; `/server_info` reports it as a real engine's `template_hash`. */
export const TEMPLATE_HASH = sha256Hex('{{role}}\n{{content}}<|end|> … <|assistant|>\n');

export function isRole(text: unknown): text is Role {
  return typeof text === 'string' && Object.hasOwn(ROLE_ID, text);
}

export function isTokenId(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < VOCABULARY_SIZE;
}

export function encodeText(text: string): number[] {
  const ids: number[] = [];
  for (const byte of Buffer.from(text, 'utf8')) ids.push(byte + FIRST_BYTE_ID);
  return ids;
}

const SPECIAL_ID: ReadonlyMap<string, number> = new Map([...SPECIAL_TEXT].map(([id, text]) => [text, id]));
const SPECIALS = /(<\|(?:end|user|assistant|system|tool)\|>)/;

/** A prompt that is rendered already, as `/tokenize` and `/generate` take it: what spells a special is one, as in real tokenizers. */
export function encodeRendered(text: string): number[] {
  return text.split(SPECIALS).flatMap((part) => SPECIAL_ID.get(part) ?? encodeText(part));
}

/** `tools`: definitions, each as its JSON text; they stand in the system message, as in the templates that have tools. */
export function encodeMessages(messages: readonly Message[], asksForAnswer: boolean, tools: readonly string[] = []): number[] {
  const ids: number[] = [];
  for (const { role, content, toolCalls = [] } of withTools(messages, tools)) {
    ids.push(ROLE_ID[role], NEWLINE + FIRST_BYTE_ID);
    for (const byte of Buffer.from(renderCalls(content, toolCalls), 'utf8')) ids.push(byte + FIRST_BYTE_ID);
    ids.push(STOP_ID);
  }
  if (asksForAnswer) ids.push(ROLE_ID.assistant, NEWLINE + FIRST_BYTE_ID);
  return ids;
}

function withTools(messages: readonly Message[], tools: readonly string[]): readonly Message[] {
  if (tools.length === 0) return messages;
  const [first, ...rest] = messages;
  const text = `# Tools\n${tools.join('\n')}`;
  if (first?.role !== 'system') return [{ role: 'system', content: text }, ...messages];
  return [{ role: 'system', content: `${first.content}\n\n${text}` }, ...rest];
}

/** What the last assistant has said so far, where the ids end inside its message: what a continuation goes on from. */
export function saidSoFar(promptIds: readonly number[]): readonly number[] {
  const opened = promptIds.lastIndexOf(ROLE_ID.assistant);
  const said = opened < 0 ? [] : promptIds.slice(opened + 2); // 2: the role and its line feed
  return said.includes(STOP_ID) ? [] : said;
}

/** Specials are spelled out, as the `/detokenize` of vLLM does. Bytes that are no UTF-8 become U+FFFD. */
export function decodeIds(ids: readonly number[]): string {
  let text = '';
  let bytes: number[] = [];
  for (const id of ids) {
    if (id >= FIRST_BYTE_ID && id < FIRST_ID_AFTER_BYTES) {
      bytes.push(id - FIRST_BYTE_ID);
      continue;
    }
    text += Buffer.from(bytes).toString('utf8') + (SPECIAL_TEXT.get(id) ?? '');
    bytes = [];
  }
  return text + Buffer.from(bytes).toString('utf8');
}
