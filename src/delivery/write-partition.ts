/**
 * One partition's records → its token parts and conversation parts.
 *
 * Whether conversations carry `reasoning_content` is one answer for the whole partition, and only its last record may
 * settle it. So a pass assumes that none does; at the first record with reasoning the pass is thrown away and made again
 * with the field on. A partition that reasons shows it in its first records, so the second reading costs little.
 */
import { bug } from '../base/errors.ts';
import type { TrainingRecord } from '../shard/record.ts';
import type { UnreadableRecord } from './check-run.ts';
import {
  CONVERSATION_REASONS,
  type ConversationReason,
  hasReasoning,
  isReasoningOptional,
  renderConversationRow,
} from './conversation-rows.ts';
import type { ExportPartition } from './export-manifest.ts';
import { type ExportTarget, TARGETS, type TargetLayout } from './export-targets.ts';
import { type ExportWriters, openWriters, type Split } from './export-writers.ts';
import { isHeldOut } from './held-out.ts';
import { flattenTokenRow } from './parquet-rows.ts';
import { renderTokenRows, TOKEN_ROW_REASONS, type TokenRow, type TokenRowReason } from './token-rows.ts';

/** What `withheldBecause` judges by. */
export type RecordKey = Pick<TrainingRecord, 'partition' | 'id'>;

/** One partition's live records, and those that cannot be read if they are withheld. `open` may be called twice. */
export interface ExportSource {
  readonly partition: string;
  open(): AsyncIterable<TrainingRecord | UnreadableRecord>;
}

export interface PartitionWrite {
  readonly source: ExportSource;
  readonly target: ExportTarget;
  readonly folder: string;
  readonly partBytes: number;
  readonly idPrefix: string;
  readonly vocabularySize: number;
  readonly extendMask: boolean;
  /** Share of the prompts that goes to `held-out/`; 0 = the export is not split. */
  readonly heldOut: number;
  /** The finding for which a record is left out. */
  readonly withheldBecause?: (record: RecordKey) => string | undefined;
  /** Counts the tokens that the model wrote, of rows that are not held out. */
  readonly counts?: Map<number, number>;
  readonly signal?: AbortSignal;
}

interface Counts {
  records: number;
  heldOutRecords: number;
  truncatedRecords: number;
  tokenRows: number;
  tokens: number;
  supervisedTokens: number;
  conversationRows: number;
  givenConversations: number;
  readonly withheld: Record<string, number>;
  readonly leftOutTokens: Record<TokenRowReason, number>;
  readonly leftOutConversations: Record<ConversationReason, number>;
  /** Added to `write.counts` when the pass is whole. */
  readonly written: Map<number, number>;
}

interface Pass {
  readonly write: PartitionWrite;
  readonly layout: TargetLayout;
  readonly withReasoning: boolean;
  readonly writers: ExportWriters;
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
  const { folder, target, partBytes } = write;
  const writers = openWriters({ folder, target, partition, partBytes });
  const pass: Pass = { write, layout: TARGETS[target], withReasoning, writers, counts: noCounts() };
  let isWhole = false;
  try {
    isWhole = await writeRecords(pass);
  } catch (thrown) {
    await writers.close().catch(() => undefined); // lets go of the files; the first error is the one to tell
    throw thrown;
  }
  const files = await writers.close();
  if (!isWhole) {
    await writers.discard();
    return undefined;
  }
  const { leftOutTokens, leftOutConversations, written, ...counts } = pass.counts;
  for (const [id, count] of written) write.counts?.set(id, (write.counts.get(id) ?? 0) + count);
  return { partition, withReasoning, ...counts, leftOut: { tokens: leftOutTokens, conversations: leftOutConversations }, files };
}

async function writeRecords(pass: Pass): Promise<boolean> {
  const { counts, layout, write } = pass;
  const format = layout.conversations?.format;
  const mayLackReasoning = format !== undefined && isReasoningOptional(format) && !pass.withReasoning;
  for await (const record of write.source.open()) {
    write.signal?.throwIfAborted();
    const finding = write.withheldBecause?.(record);
    if (finding !== undefined) {
      counts.withheld[finding] = (counts.withheld[finding] ?? 0) + 1;
      continue;
    }
    if ('unreadable' in record) throw bug('A record that cannot be read was not withheld.', { record: record.id });
    if (mayLackReasoning && hasReasoning(record)) return false;
    const split = splitOf(record, write.heldOut);
    counts.records += 1;
    if (split === 'held-out') counts.heldOutRecords += 1;
    if (record.turns.some((turn) => turn.finish === 'length')) counts.truncatedRecords += 1;
    await writeTokenRows(pass, record, split);
    await writeConversation(pass, record, split);
  }
  return true;
}

function splitOf({ id }: TrainingRecord, share: number): Split {
  if (share === 0) return '';
  return isHeldOut(id, share) ? 'held-out' : 'train';
}

async function writeTokenRows(pass: Pass, record: TrainingRecord, split: Split): Promise<void> {
  const { counts, layout, write } = pass;
  if (!layout.hasTokens && write.counts === undefined) return;
  const { idPrefix, vocabularySize, extendMask } = write;
  const { rows, leftOut } = renderTokenRows(record, { idPrefix, vocabularySize, extendMask });
  if (split !== 'held-out') for (const row of rows) countWritten(row, record, counts.written);
  if (!layout.hasTokens) return;
  for (const reason of leftOut) counts.leftOutTokens[reason] += 1;
  for (const row of rows) {
    const shaped = layout.container === 'parquet' ? flattenTokenRow(row) : row;
    await pass.writers.append({ split, shape: 'tokens', hasTools: false }, shaped);
    counts.tokenRows += 1;
    counts.tokens += row.input_ids.length;
    counts.supervisedTokens += row.loss_mask.reduce((sum, bit) => sum + bit, 0);
  }
}

/** Of the turns in the row what the model wrote, whatever else the mask covers. */
function countWritten({ metadata }: TokenRow, record: TrainingRecord, written: Map<number, number>): void {
  for (const turn of record.turns.slice(metadata.first_turn, metadata.first_turn + metadata.turns)) {
    for (const id of turn.outputIds) written.set(id, (written.get(id) ?? 0) + 1);
  }
}

async function writeConversation(pass: Pass, record: TrainingRecord, split: Split): Promise<void> {
  const { counts, layout, write, withReasoning } = pass;
  if (layout.conversations === undefined) return;
  const { format } = layout.conversations;
  const result = renderConversationRow(record, { format, idPrefix: write.idPrefix, withReasoning });
  if (result.kind === 'left-out') {
    counts.leftOutConversations[result.reason] += 1;
    return;
  }
  await pass.writers.append({ split, shape: 'conversations', hasTools: result.hasTools }, result.row);
  counts.conversationRows += 1;
  if (result.hasGiven) counts.givenConversations += 1;
}

function noCounts(): Counts {
  return {
    records: 0,
    heldOutRecords: 0,
    truncatedRecords: 0,
    tokenRows: 0,
    tokens: 0,
    supervisedTokens: 0,
    conversationRows: 0,
    givenConversations: 0,
    withheld: {},
    leftOutTokens: zeroEach(TOKEN_ROW_REASONS),
    leftOutConversations: zeroEach(CONVERSATION_REASONS),
    written: new Map(),
  };
}

function zeroEach<K extends string>(keys: readonly K[]): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>;
}
