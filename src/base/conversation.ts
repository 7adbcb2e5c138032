/** What a conversation is made of. Used by every ring that touches messages. */

export const ROLES = ['system', 'user', 'assistant', 'tool'] as const;
export type Role = (typeof ROLES)[number];

/** A tool call as the engine reported it; `arguments` is the JSON text, kept exactly. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface Message {
  readonly role: Role;
  readonly content: string;
  /** Of an assistant message that is given, not generated. Left out: none. */
  readonly toolCalls?: readonly ToolCall[];
  /** Of a tool message: the call it answers, and the tool's name. Left out: not said. */
  readonly toolCallId?: string;
  readonly name?: string;
}

/** One conversation to be completed, as it lies in `prompts/NAME.jsonl` of a run folder. */
export interface Prompt {
  /** First 26 base32 characters of sha256(canonical messages + tools); see `dataset/prompt-id.ts`. */
  readonly id: string;
  /**
   * Optional leading system message, then user messages, each a turn to be answered, and the tool results that the source has
   * for it. An assistant message is one that is given: the turn before it is not generated.
   */
  readonly messages: readonly Message[];
  /** Tool definitions, each as its JSON text: one type for all of them. */
  readonly tools: readonly string[];
}
