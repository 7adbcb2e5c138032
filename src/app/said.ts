/** A record as what was said, in order: each message with the turn that generated it, where one did. Pure. */
import type { Message } from '../base/conversation.ts';
import type { RecordTurn, TrainingRecord } from '../shard/record.ts';
import { joinConversation } from '../shard/walk-conversation.ts';

export interface Said {
  readonly message: Message;
  /** undefined: the source gave it. */
  readonly turn: RecordTurn | undefined;
}

/** Where the source has no result for a call, it ends with the call. */
export function saidIn({ messages, turns }: TrainingRecord): Said[] {
  // The walk passes on the messages of the prompt as they are.
  const given = new Set(messages);
  let answered = 0;
  return joinConversation(messages, turns).map((message) => ({
    message,
    turn: message.role === 'assistant' && !given.has(message) ? turns[answered++] : undefined,
  }));
}
