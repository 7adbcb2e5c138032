/** What an export says about itself: the result of the command, and the text that lies beside the folder. Pure. */
import { formatBytes, formatCount } from '../base/units.ts';
import type { ConversationReason } from './conversation-rows.ts';
import { MANIFEST_MARK } from './export-folder.ts';
import type { TokenRowReason } from './token-rows.ts';

export const EXPORT_TARGETS = ['specforge', 'speculators'] as const;
export type ExportTarget = (typeof EXPORT_TARGETS)[number];

export interface ExportedFile {
  /** Below the export folder. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface ExportPartition {
  readonly partition: string;
  readonly records: number;
  /** Records with an answer that was cut at the cap; they are exported. */
  readonly truncatedRecords: number;
  readonly tokenRows: number;
  readonly tokens: number;
  /** Tokens with mask 1: what the target model wrote. */
  readonly supervisedTokens: number;
  readonly conversationRows: number;
  /** Do the conversations carry `reasoning_content`? */
  readonly withReasoning: boolean;
  /** Rows that were not written, by reason. */
  readonly leftOut: {
    readonly tokens: Readonly<Record<TokenRowReason, number>>;
    readonly conversations: Readonly<Record<ConversationReason, number>>;
  };
  readonly files: readonly ExportedFile[];
}

export interface ExportResult {
  readonly target: ExportTarget;
  readonly folder: string;
  readonly manifest: string;
  readonly partitions: readonly ExportPartition[];
}

/** What each reason means, for people. */
export const LEFT_OUT_BECAUSE: Readonly<Record<TokenRowReason | ConversationReason, string>> = {
  'not-exact': 'the server gave text without token ids',
  'no-output-ids': 'the answer has no tokens',
  'id-out-of-range': 'a token id is outside the vocabulary',
  'empty-content': 'a message is empty',
  'think-marker': 'an answer holds <think> or </think>',
  'unpaired-surrogate': 'a message holds half a character',
  'nul-character': 'a message holds a NUL character',
  'message-order': 'questions and answers do not alternate',
  'tool-call': 'the answer is a tool call',
};

/** Sentences about what an export lacks or what to know before training on it; said aloud by the command. */
export function exportNotes(result: ExportResult): string[] {
  const notes: string[] = [];
  for (const { partition, leftOut, truncatedRecords, conversationRows } of result.partitions) {
    for (const [shape, counts] of Object.entries(leftOut)) {
      for (const [reason, count] of Object.entries(counts)) {
        if (count === 0) continue;
        const because = LEFT_OUT_BECAUSE[reason as keyof typeof LEFT_OUT_BECAUSE];
        notes.push(`${partition}: ${formatCount(count)} left out of ${shape}: ${because} (${reason}).`);
      }
    }
    if (truncatedRecords > 0 && conversationRows > 0) {
      notes.push(
        `${partition}: ${formatCount(truncatedRecords)} records were cut at the cap. A chat template ends every answer, so training on conversations teaches the drafter to stop there; token rows do not.`,
      );
    }
  }
  return notes;
}

export function renderManifest(result: ExportResult, folderName: string): string {
  const lines = [MANIFEST_MARK, `target: ${result.target}`, `folder: ${folderName}`, ''];
  for (const partition of result.partitions) {
    lines.push(
      `${partition.partition}: ${formatCount(partition.records)} records, ${formatCount(partition.tokenRows)} token rows, ` +
        `${formatCount(partition.conversationRows)} conversation rows, ${formatCount(partition.tokens)} tokens, ` +
        `${formatCount(partition.supervisedTokens)} of them supervised`,
    );
    for (const file of partition.files) {
      lines.push(`  ${file.path}  ${formatCount(file.rows)} rows  ${formatBytes(file.bytes)}  sha256 ${file.sha256}`);
    }
  }
  const notes = exportNotes(result);
  if (notes.length > 0) lines.push('', ...notes);
  lines.push('', ...USE[result.target], '');
  return lines.join('\n');
}

const USE: Readonly<Record<ExportTarget, readonly string[]>> = {
  specforge: [
    'SpecForge reads one file at a time and needs about 47 bytes of memory a token: give it one part per run.',
    '  data.prompts_path: a file of tokens/          (ids and mask as the engine saw them; prefer this)',
    '  data.train_data_path: a file of conversations/ (re-rendered with its own template)',
  ],
  speculators: ['speculators reads the whole folder: give it tokens/, or single parts as a list.'],
};
