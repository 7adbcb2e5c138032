/** Every target: what the independent reader accepts, rebuilt exactly from the records, and counted to the last one. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { readExport } from '../../test/support/read-export.mjs';
import { readParquetFolder } from '../../test/support/read-parquet.ts';
import { anyConversation } from '../../test/support/sample-conversations.ts';
import { sampleMessage, sampleRecord, sampleTurn, streamOf } from '../../test/support/sample-records.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { joinConversation } from '../shard/walk-conversation.ts';
import { type ExportRequest, exportRun } from './export-run.ts';
import type { ExportTarget } from './export-targets.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'aerie-targets-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const limits = { vocabularySize: 100, maxLength: 8192 };
const someRecords = fc.uniqueArray(anyConversation, { selector: (record) => record.id, minLength: 1, maxLength: 8 });

async function write(target: ExportTarget, records: readonly TrainingRecord[], change: Partial<ExportRequest> = {}) {
  const folder = join(root, target);
  const sources = [{ partition: 'B1', open: () => streamOf(records) }];
  const result = await exportRun({ sources, target, folder, vocabularySize: 100, ...change });
  const [partition] = result.partitions;
  if (partition === undefined) throw new Error('one partition was written');
  return { folder, result, partition, read: readExport(folder, limits) };
}

/** What was said, as anyone would write it down. */
const said = (record: TrainingRecord) => joinConversation(record.messages, record.turns);
const hasTools = (record: TrainingRecord) => record.tools.length > 0;
const reasons = (record: TrainingRecord) => record.turns.some((turn) => turn.reasoning !== '');
const byId = <T>(rows: readonly T[], idOf: (row: T) => string | undefined) => new Map(rows.map((row) => [idOf(row), row]));

describe('every target', () => {
  it('modelopt: messages with conversation_id, the same words in the same order, tools counted out', async () => {
    await fc.assert(
      fc.asyncProperty(someRecords, fc.integer({ min: 1, max: 2000 }), async (records, partBytes) => {
        const { partition, read } = await write('modelopt', records, { partBytes });
        expect(read.findings).toEqual([]);
        const plain = records.filter((record) => !hasTools(record));
        expect(read.messageRows).toHaveLength(plain.length);
        const { leftOut } = partition;
        expect(leftOut.conversations['tool-call'] + leftOut.conversations['tool-definitions']).toBe(
          records.length - plain.length,
        );
        const rows = byId(read.messageRows, (row) => row.conversation_id);
        for (const record of plain) {
          const row = rows.get(record.id);
          expect(row?.messages.map(({ role, content }) => ({ role, content }))).toEqual(
            said(record).map(({ role, content }) => ({ role, content })),
          );
        }
      }),
      { numRuns: runs(20) },
    );
  });

  it('automodel: tool calls, results and definitions too, in files where every row has them', async () => {
    await fc.assert(
      fc.asyncProperty(someRecords, async (records) => {
        const { partition, read } = await write('automodel', records);
        expect(read.findings).toEqual([]);
        expect(partition.conversationRows).toBe(records.length);
        const rows = byId(read.messageRows, (row) => row.id);
        for (const record of records) {
          const row = rows.get(record.id);
          expect(row?.tools).toEqual(hasTools(record) ? record.tools.map((tool) => JSON.parse(tool) as unknown) : undefined);
          expect(
            row?.messages.map(({ role, content, tool_calls = [], tool_call_id = '' }) => [
              role,
              content,
              tool_calls,
              tool_call_id,
            ]),
          ).toEqual(
            said(record).map(({ role, content, toolCalls = [], toolCallId = '' }) => [
              role,
              content,
              toolCalls.map((call) => ({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: JSON.parse(call.arguments) as unknown },
              })),
              toolCallId,
            ]),
          );
          const generated = row?.messages.flatMap((message) => message.reasoning_content ?? []).filter((text) => text !== '');
          expect(generated).toEqual(record.turns.map((turn) => turn.reasoning).filter((text) => text !== ''));
        }
      }),
      { numRuns: runs(20) },
    );
  });

  it('eagle: human and gpt in turn; reasoning, tools and a system message counted out', async () => {
    await fc.assert(
      fc.asyncProperty(someRecords, async (records) => {
        const { partition, read } = await write('eagle', records);
        expect(read.findings).toEqual([]);
        const plain = records.filter((record) => !hasTools(record) && !reasons(record) && record.messages[0]?.role !== 'system');
        expect(read.eagleRows.map((row) => row.id)).toEqual(plain.map((record) => record.id));
        const counted = Object.values(partition.leftOut.conversations).reduce((sum, count) => sum + count, 0);
        expect(counted).toBe(records.length - plain.length);
        expect(read.eagleRows.map((row) => row.conversations.map(({ value }) => value))).toEqual(
          plain.map((record) => said(record).map(({ content }) => content)),
        );
      }),
      { numRuns: runs(20) },
    );
  });

  it('specforge and speculators: a mask of ones on nothing but what the model wrote, given answers or not', async () => {
    await fc.assert(
      fc.asyncProperty(someRecords, async (records) => {
        const { read } = await write('specforge', records);
        expect(read.findings).toEqual([]);
        const supervised = read.tokenRows.flatMap((row) => row.input_ids.filter((_id, at) => row.loss_mask[at] === 1));
        expect(supervised).toEqual(records.flatMap((record) => record.turns.flatMap((turn) => turn.outputIds)));
        const { read: other } = await write('speculators', records);
        expect(other.tokenRows).toEqual(read.tokenRows);
      }),
      { numRuns: runs(15) },
    );
  });

  it('parquet: one schema in every file, the ids and masks of the JSON export, every conversation', async () => {
    await fc.assert(
      fc.asyncProperty(someRecords, fc.integer({ min: 200, max: 4000 }), async (records, partBytes) => {
        const { folder, partition } = await write('parquet', records, { partBytes });
        const { read } = await write('specforge', records);
        const tokens = await readParquetFolder(join(folder, 'tokens'));
        expect(new Set(tokens.schemas).size).toBe(1);
        expect(tokens.rows.map(({ id, input_ids, loss_mask, text }) => ({ id, input_ids, loss_mask, text }))).toEqual(
          read.tokenRows.map(({ id, input_ids, loss_mask, text }) => ({ id, input_ids, loss_mask, text })),
        );
        const messages = await readParquetFolder(join(folder, 'messages'));
        expect(new Set(messages.schemas).size).toBe(1);
        expect(partition.conversationRows).toBe(records.length);
        expect(messages.rows.map((row) => row['tools'])).toEqual(records.map((record) => `[${record.tools.join(',')}]`));
        expect(
          messages.rows.map((row) =>
            (row['messages'] as { content: string; tool_calls: unknown[] }[]).map(({ content, tool_calls }) => [
              content,
              tool_calls,
            ]),
          ),
        ).toEqual(
          records.map((record) =>
            said(record).map(({ content, toolCalls = [] }) => [
              content,
              toolCalls.map((call) => ({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: call.arguments },
              })),
            ]),
          ),
        );
      }),
      { numRuns: runs(20) },
    );
  });

  it('parquet: row groups and parts are bounded, however many rows there are', async () => {
    const outputIds = Array.from({ length: 100_000 }, (_, at) => at % 97);
    const records = Array.from({ length: 17 }, (_, at) => sampleRecord({ id: `id${at}`, turns: [sampleTurn({ outputIds })] }));
    const { folder, partition } = await write('parquet', records, { partBytes: 12 * 2 ** 20 });
    const tokens = await readParquetFolder(join(folder, 'tokens'));
    expect(tokens.rowGroups).toEqual([2, 1]); // 0.8 MB of values a row: 10 rows in a group of 8 MiB, 15 in a part of 12 MiB
    expect(partition.files.filter(({ path }) => path.startsWith('tokens/')).map(({ rows }) => rows)).toEqual([15, 2]);
    expect(tokens.rows[16]?.['loss_mask']).toEqual([0, 0, 0, ...outputIds.map(() => 1)]);
  });

  it('says that conversations hold given answers, which a trainer of text supervises too', async () => {
    const messages = [sampleMessage('user', 'one?'), sampleMessage('assistant', 'given'), sampleMessage('user', 'two?')];
    const { partition, read } = await write('specforge', [sampleRecord({ messages, turns: [sampleTurn()] })]);
    expect(partition).toMatchObject({ givenConversations: 1, supervisedTokens: 3 });
    expect(read.conversationRows[0]?.conversations.map(({ content }) => content)).toEqual(['one?', 'given', 'two?', 'four']);
  });

  it.each([
    ['tool-arguments', { toolCalls: [{ id: '1', name: 'f', arguments: 'no JSON' }] }, []],
    ['tool-arguments', { toolCalls: [{ id: '1', name: 'f', arguments: '{"n":12345678901234567890}' }] }, []],
    ['tool-definitions', {}, ['[]']],
  ])('automodel: %s that no template could render is left out', async (reason, change, tools) => {
    const { partition } = await write('automodel', [sampleRecord({ tools, turns: [sampleTurn(change)] })]);
    expect(partition.leftOut.conversations).toMatchObject({ [reason]: 1 });
  });
});
