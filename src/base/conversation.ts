/** What a conversation is made of. Used by every ring that touches messages. */

export const ROLES = ['system', 'user', 'assistant', 'tool'] as const;
export type Role = (typeof ROLES)[number];

export interface Message {
  readonly role: Role;
  readonly content: string;
}

/** A tool call as the engine reported it; `arguments` is the JSON text, kept exactly. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** One conversation to be completed, as it lies in `prompts/NAME.jsonl` of a run folder. */
export interface Prompt {
  /** First 26 base32 characters of sha256(canonical messages + tools); see `dataset/prompt-id.ts`. */
  readonly id: string;
  /** Optional leading system message, then user messages; each user message is a turn to be answered. */
  readonly messages: readonly Message[];
  /** Tool definitions; always empty in this version. */
  readonly tools: readonly never[];
}
