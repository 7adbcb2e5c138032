/** What an export says about itself: the result of the command, and the text that lies beside the folder. Pure. */
import { formatBytes, formatCount } from '../base/units.ts';
import type { ConversationReason } from './conversation-rows.ts';
import type { CountsResult } from './export-counts.ts';
import { MANIFEST_MARK } from './export-folder.ts';
import { type ExportTarget, TARGETS } from './export-targets.ts';
import type { TokenRowReason } from './token-rows.ts';

export interface ExportedFile {
  /** Below the export folder. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface ExportPartition {
  readonly partition: string;
  /** Those that were not withheld. */
  readonly records: number;
  /** Of them, those in `held-out/`. */
  readonly heldOutRecords: number;
  /** Records that were left out for a finding, by its code. */
  readonly withheld: Readonly<Record<string, number>>;
  /** Records with an answer that was cut at the cap; they are exported. */
  readonly truncatedRecords: number;
  readonly tokenRows: number;
  readonly tokens: number;
  /** Tokens with mask 1: what the target model wrote, and one before each answer where the mask was extended. */
  readonly supervisedTokens: number;
  readonly conversationRows: number;
  /** Of them, those that hold answers which the source gave. */
  readonly givenConversations: number;
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
  /** Share of the prompts in `held-out/`; 0 = not split. */
  readonly heldOut: number;
  readonly extendMask: boolean;
  readonly counts?: CountsResult;
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
  'tool-call': 'an answer calls a tool, and the format has no place for that',
  'tool-definitions': 'the model was shown tools, and the format has no place for them or they are no JSON objects',
  'tool-arguments': 'the arguments of a call are no JSON object',
  'system-message': 'it has a system message, and the trainer puts its own in that place',
  reasoning: 'the model reasoned, and the format has no place for that',
};

/** Sentences about what an export lacks or what to know before training on it; said aloud by the command. */
export function exportNotes(result: ExportResult): string[] {
  const notes = result.partitions.flatMap(partitionNotes);
  if (result.heldOut > 0) {
    const count = result.partitions.reduce((sum, partition) => sum + partition.heldOutRecords, 0);
    notes.push(`${formatCount(count)} records are in held-out/: point the trainer at train/, never at the folder above.`);
  }
  if (result.counts !== undefined && result.counts.tokens === 0 && result.counts.draftVocabulary > 0) {
    notes.push('No token was counted, so the draft vocabulary is the first ids of the vocabulary and of no use.');
  }
  if (result.extendMask) notes.push('The mask covers one token before each answer too (--extend-mask).');
  return notes;
}

function partitionNotes(exported: ExportPartition): string[] {
  const { partition, leftOut, withheld, truncatedRecords, conversationRows, givenConversations } = exported;
  const notes: string[] = [];
  for (const [code, count] of Object.entries(withheld))
    notes.push(`${partition}: ${formatCount(count)} ${count === 1 ? 'record' : 'records'} left out: ${code}.`);
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
  if (givenConversations > 0) {
    notes.push(
      `${partition}: ${formatCount(givenConversations)} conversations hold answers that the source gave. A trainer of conversations supervises those too; token rows mark only what the model wrote.`,
    );
  }
  return notes;
}

export function renderManifest(result: ExportResult, folderName: string): string {
  const lines = [MANIFEST_MARK, `target: ${result.target}`, `folder: ${folderName}`];
  if (result.heldOut > 0) lines.push(`held out: ${result.heldOut} of the prompts, by a hash of their id`);
  lines.push('');
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
  if (result.counts !== undefined) lines.push('', countsLine(result.counts));
  const notes = exportNotes(result);
  if (notes.length > 0) lines.push('', ...notes);
  lines.push('', ...TARGETS[result.target].use, '');
  return lines.join('\n');
}

/** One line; `aerie export` prints it too. */
export function countsLine({ tokens, distinct, draftVocabulary, vocabularySize, coverage, hash }: CountsResult): string {
  const counted = `${formatCount(tokens)} tokens counted, ${formatCount(distinct)} different ones`;
  // Rounded down: a coverage that is not whole must not read as whole.
  const share = (Math.floor(coverage * 10_000) / 100).toFixed(2);
  const map = `a draft vocabulary of ${formatCount(draftVocabulary)} of ${formatCount(vocabularySize)} covers ${share} %`;
  return `${counted}${draftVocabulary > 0 ? `; ${map}` : ''} (hash ${hash.slice(0, 12)})`;
}
