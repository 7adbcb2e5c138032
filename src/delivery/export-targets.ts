/** The trainers that `aerie export --for` knows, as data: which shapes each gets, and how to point it at them. */
import type { ConversationFormat } from './conversation-rows.ts';

export const EXPORT_TARGETS = ['specforge', 'speculators', 'modelopt', 'automodel', 'eagle', 'parquet'] as const;
export type ExportTarget = (typeof EXPORT_TARGETS)[number];

export interface TargetLayout {
  readonly container: 'jsonl' | 'parquet';
  readonly hasTokens: boolean;
  /** Left out: the trainer reads no conversations. `folder` is also what the files are called. */
  readonly conversations?: { readonly format: ConversationFormat; readonly folder: 'conversations' | 'messages' };
  /** How to use the folder; lines of the manifest. */
  readonly use: readonly string[];
}

const RENDERED_ANEW = 'The trainer renders and encodes the text anew; Aerie cannot vouch that the ids are those the model saw.';

export const TARGETS: Readonly<Record<ExportTarget, TargetLayout>> = {
  specforge: {
    container: 'jsonl',
    hasTokens: true,
    conversations: { format: 'specforge', folder: 'conversations' },
    use: [
      'SpecForge reads one file at a time and needs about 47 bytes of memory a token: give it one part per run.',
      '  data.prompts_path: a file of tokens/          (ids and mask as the engine saw them; prefer this)',
      '  data.train_data_path: a file of conversations/ (re-rendered with its own template)',
    ],
  },
  speculators: {
    container: 'jsonl',
    hasTokens: true,
    use: ['speculators reads the whole folder: give it tokens/, or single parts as a list.'],
  },
  modelopt: {
    container: 'jsonl',
    hasTokens: false,
    conversations: { format: 'modelopt', folder: 'messages' },
    use: [
      'Model-Optimizer: data.data_path: a file of messages/, or the folder messages/.',
      'Its loss covers all tokens unless answer_only_loss is set, which needs {% generation %} tags in the chat template.',
      RENDERED_ANEW,
    ],
  },
  automodel: {
    container: 'jsonl',
    hasTokens: false,
    conversations: { format: 'automodel', folder: 'messages' },
    use: [
      'Automodel: give the files of messages/ as a list. Conversations with tool definitions are in files of their own (tool-messages).',
      RENDERED_ANEW,
    ],
  },
  eagle: {
    container: 'jsonl',
    hasTokens: false,
    conversations: { format: 'eagle', folder: 'conversations' },
    use: [
      'traineagle3: --trainpath a file of conversations/. It is made for Llama 3 alone, puts its own system prompt before every',
      'conversation and drops what is longer than 2,048 tokens: make the run with that same system prompt, or its data is off-policy.',
      RENDERED_ANEW,
    ],
  },
  parquet: {
    container: 'parquet',
    hasTokens: true,
    conversations: { format: 'parquet', folder: 'messages' },
    use: [
      'tokens/: input_ids and loss_mask as lists of int32, metadata as columns. messages/: role, content, reasoning_content, tool_calls;',
      'tools is JSON text. Loaders that are given one file of a folder may read all of it, so each shape has its own folder.',
    ],
  },
};
