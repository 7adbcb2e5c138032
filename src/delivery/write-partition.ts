/**
 * One partition's records → its token parts and conversation parts.
 *
 * Whether conversations carry `reasoning_content` is one answer for the whole partition, and only its last record may
 * settle it. So a pass assumes that none does; at the first record with reasoning the pass is thrown away and made again
 * with the field on. A partition that reasons shows it in its first records, so the second reading costs little.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bug } from '../base/errors.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { CONVERSATION_REASONS, type ConversationReason, hasReasoning, renderConversationRow } from './conversation-rows.ts';
import type { ExportPartition, ExportedFile } from './export-manifest.ts';
import { openParts, type PartFile, type PartWriter } from './part-writer.ts';
import { renderTokenRows, TOKEN_ROW_REASONS, type TokenRowReason } from './token-rows.ts';

/** One partition's live records. `open` may be called twice. */
export interface ExportSource {
  readonly partition: string;
  open(): AsyncIterable<TrainingRecord>;
}

export interface PartitionWrite {
  readonly source: ExportSource;
  /** Existing folders; without `conversations` none are written. */
  readonly folders: { readonly tokens: string; readonly conversations?: string };
  readonly partBytes: number;
  readonly idPrefix: string;
  readonly vocabularySize: number;
  readonly signal?: AbortSignal;
}

interface Counts {
  records: number;
  truncatedRecords: number;
  tokenRows: number;
  tokens: number;
  supervisedTokens: number;
  conversationRows: number;
  readonly leftOutTokens: Record<TokenRowReason, number>;
  readonly leftOutConversations: Record<ConversationReason, number>;
}

interface Pass {
  readonly write: PartitionWrite;
  readonly withReasoning: boolean;
  readonly tokens: PartWriter;
  readonly conversations: PartWriter | undefined;
  readonly counts: Counts;
}

export async function writePartition(write: PartitionWrite): Promise<ExportPartition> {
  const written = (await writeOnce(write, false)) ?? (await writeOnce(write, true));
  if (written === undefined) throw bug('A pass with reasoning gave itself up.', { partition: write.source.partition });
  return written;
}

/** undefined = a record has reasoning and this pass was made without. */
async function writeOnce(write: PartitionWrite, withReasoning: boolean): Promise<ExportPartition | undefined> {
  const { partition } = write.source;
  const { tokens: tokensFolder, conversations: conversationsFolder } = write.folders;
  const open = (folder: string, kind: string) =>
    openParts({ folder, prefix: `${partition}.${kind}`, partBytes: write.partBytes });
  const tokens = open(tokensFolder, 'tokens');
  const conversations = conversationsFolder === undefined ? undefined : open(conversationsFolder, 'conversations');
  const pass: Pass = { write, withReasoning, tokens, conversations, counts: noCounts() };
  let isWhole = false;
  try {
    isWhole = await writeRecords(pass);
  } finally {
    await closeBoth(pass);
  }
  const tokenFiles = await tokens.close();
  const conversationFiles = (await conversations?.close()) ?? [];
  if (!isWhole) {
    await removeFiles(tokensFolder, tokenFiles);
    if (conversationsFolder !== undefined) await removeFiles(conversationsFolder, conversationFiles);
    return undefined;
  }
  const { leftOutTokens, leftOutConversations, ...counts } = pass.counts;
  return {
    partition,
    withReasoning,
    ...counts,
    leftOut: { tokens: leftOutTokens, conversations: leftOutConversations },
    files: [...inFolder('tokens', tokenFiles), ...inFolder('conversations', conversationFiles)],
  };
}

/** Both, even where the first fails: an open file would outlive the export. */
async function closeBoth(pass: Pass): Promise<void> {
  try {
    await pass.tokens.close();
  } finally {
    await pass.conversations?.close();
  }
}

async function writeRecords(pass: Pass): Promise<boolean> {
  for await (const record of pass.write.source.open()) {
    pass.write.signal?.throwIfAborted();
    if (pass.conversations !== undefined && !pass.withReasoning && hasReasoning(record)) return false;
    pass.counts.records += 1;
    if (record.turns.some((turn) => turn.finish === 'length')) pass.counts.truncatedRecords += 1;
    await writeTokenRows(pass, record);
    await writeConversation(pass, record);
  }
  return true;
}

async function writeTokenRows(pass: Pass, record: TrainingRecord): Promise<void> {
  const { counts, write } = pass;
  const { rows, leftOut } = renderTokenRows(record, { idPrefix: write.idPrefix, vocabularySize: write.vocabularySize });
  for (const reason of leftOut) counts.leftOutTokens[reason] += 1;
  for (const row of rows) {
    await pass.tokens.append(JSON.stringify(row));
    counts.tokenRows += 1;
    counts.tokens += row.input_ids.length;
    counts.supervisedTokens += row.metadata.usage.completion_tokens;
  }
}

async function writeConversation(pass: Pass, record: TrainingRecord): Promise<void> {
  if (pass.conversations === undefined) return;
  const result = renderConversationRow(record, { idPrefix: pass.write.idPrefix, withReasoning: pass.withReasoning });
  if (result.kind === 'left-out') {
    pass.counts.leftOutConversations[result.reason] += 1;
    return;
  }
  await pass.conversations.append(JSON.stringify(result.row));
  pass.counts.conversationRows += 1;
}

async function removeFiles(folder: string, files: readonly PartFile[]): Promise<void> {
  for (const file of files) await rm(join(folder, file.name));
}

function inFolder(kind: string, files: readonly PartFile[]): ExportedFile[] {
  return files.map(({ name, rows, bytes, sha256 }) => ({ path: `${kind}/${name}`, rows, bytes, sha256 }));
}

function noCounts(): Counts {
  return {
    records: 0,
    truncatedRecords: 0,
    tokenRows: 0,
    tokens: 0,
    supervisedTokens: 0,
    conversationRows: 0,
    leftOutTokens: zeroEach(TOKEN_ROW_REASONS),
    leftOutConversations: zeroEach(CONVERSATION_REASONS),
  };
}

function zeroEach<K extends string>(keys: readonly K[]): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>;
}
