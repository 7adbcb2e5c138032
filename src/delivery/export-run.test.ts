import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { proves } from '../../test/proves.ts';
import { runs } from '../../test/support/property-runs.ts';
import { readExport } from '../../test/support/read-export.mjs';
import { anyRecord, sampleRecord, sampleTurn, streamOf } from '../../test/support/sample-records.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { exportNotes } from './export-manifest.ts';
import { exportRun } from './export-run.ts';

let root: string;
let folder: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'aerie-export-'));
  folder = join(root, 'export', 'specforge');
});
afterEach(() => rm(root, { recursive: true, force: true }));

const source = (partition: string, records: readonly TrainingRecord[]) => ({ partition, open: () => streamOf(records) });
const many = (count: number, change: Partial<TrainingRecord> = {}) =>
  Array.from({ length: count }, (_, index) => sampleRecord({ id: `id${index}`, ...change }));
const limits = { vocabularySize: 100, maxLength: 8192 };

describe('export', () => {
  proves('export:whole-or-absent', 'writes both shapes for SpecForge, each in its own folder, and nothing else', async () => {
    const sources = [source('B1', many(3)), source('B2', many(2))];
    const result = await exportRun({ sources, target: 'specforge', folder });
    const read = readExport(folder, limits);
    expect(read.findings).toEqual([]);
    expect(read.files).toEqual([
      'conversations/B1.conversations-00000.jsonl',
      'conversations/B2.conversations-00000.jsonl',
      'tokens/B1.tokens-00000.jsonl',
      'tokens/B2.tokens-00000.jsonl',
    ]);
    expect(read.tokenRows.map((row) => row.id)).toContain('B2/id1_gen0');
    expect(result.partitions[0]).toMatchObject({
      records: 3,
      tokenRows: 3,
      conversationRows: 3,
      tokens: 18,
      supervisedTokens: 9,
    });
    expect(await readdir(join(root, 'export'))).toEqual(['specforge', 'specforge.manifest.txt']);
    for (const file of result.partitions.flatMap((partition) => partition.files)) {
      const bytes = await readFile(join(folder, file.path));
      expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([file.bytes, file.sha256]);
    }
  });

  it('writes token rows alone for speculators', async () => {
    await exportRun({ sources: [source('B1', many(1))], target: 'speculators', folder });
    expect(readExport(folder, limits)).toMatchObject({ findings: [], files: ['tokens/B1.tokens-00000.jsonl'] });
  });

  it('cuts parts at their size, and gives a longer row a part of its own', async () => {
    const records = [
      ...many(20),
      sampleRecord({ id: 'long', turns: [sampleTurn({ outputIds: Array.from({ length: 3000 }, () => 5) })] }),
      sampleRecord({ id: 'last' }),
    ];
    const result = await exportRun({ sources: [source('B1', records)], target: 'specforge', folder, partBytes: 4096 });
    const files = result.partitions.flatMap((partition) => partition.files);
    expect(files.filter((file) => file.bytes > 4096)).toMatchObject([{ rows: 1 }]);
    expect(files.length).toBeGreaterThan(4);
    const read = readExport(folder, limits);
    expect(read.findings).toEqual([]);
    expect(read.tokenRows.map((row) => row.primary_id)).toEqual(records.map((record) => record.id));
  });

  it('carries reasoning on all conversations of a partition once any record has it, late as it may come', async () => {
    const records = [...many(5), sampleRecord({ id: 'late', turns: [sampleTurn({ reasoning: 'hm' })] })];
    const result = await exportRun({
      sources: [source('B1', records), source('B2', many(1))],
      target: 'specforge',
      folder,
      partBytes: 512,
    });
    expect(result.partitions.map((partition) => partition.withReasoning)).toEqual([true, false]);
    const { findings, conversationRows } = readExport(folder, limits);
    expect(findings).toEqual([]);
    expect(conversationRows.map((row) => row.conversations[1]?.reasoning_content)).toEqual(['', '', '', '', '', 'hm', undefined]);
    expect(result.partitions[0]).toMatchObject({ records: 6, tokenRows: 6 });
  });

  it('counts what it leaves out and says it, in the manifest too', async () => {
    const records = [
      sampleRecord({
        id: 'a',
        exact: false,
        inexactBecause: 'text only',
        turns: [sampleTurn({ promptIds: [], outputIds: [], text: 'x' })],
      }),
      sampleRecord({ id: 'b', turns: [sampleTurn({ text: '' })] }),
      sampleRecord({ id: 'c', turns: [sampleTurn({ outputIds: [5], text: 'cut' })] }),
      sampleRecord({ id: 'd', turns: [sampleTurn({ outputIds: [500, 2] })] }),
    ];
    const result = await exportRun({ sources: [source('B1', records)], target: 'specforge', folder, vocabularySize: 100 });
    expect(result.partitions[0]?.leftOut).toMatchObject({
      tokens: { 'not-exact': 1, 'id-out-of-range': 1 },
      conversations: { 'empty-content': 1 },
    });
    expect(exportNotes(result)).toHaveLength(4);
    const manifest = await readFile(result.manifest, 'utf8');
    for (const note of exportNotes(result)) expect(manifest).toContain(note);
    expect(readExport(folder, limits).findings).toEqual([]);
  });

  it('gives the same bytes for the same records, and replaces its own export', async () => {
    const request = { sources: [source('B1', many(4))], target: 'specforge', folder } as const;
    const first = await exportRun(request);
    await exportRun({ ...request, sources: [source('B1', many(9))] });
    expect(readExport(folder, limits).tokenRows).toHaveLength(9);
    expect((await exportRun(request)).partitions).toEqual(first.partitions);
    expect(await readdir(join(root, 'export'))).toEqual(['specforge', 'specforge.manifest.txt']);
  });

  it('refuses a folder that holds what Aerie did not make, a file, or a link, and touches nothing', async () => {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'thesis.tex'), 'mine');
    const request = { sources: [source('B1', many(1))], target: 'specforge' } as const;
    await expect(exportRun({ ...request, folder })).rejects.toMatchObject({ code: 'export.target' });
    expect(await readdir(join(root, 'export'))).toEqual(['specforge']);
    await expect(exportRun({ ...request, folder: join(folder, 'thesis.tex') })).rejects.toMatchObject({ code: 'export.target' });
    await symlink(folder, join(root, 'link'));
    await expect(exportRun({ ...request, folder: join(root, 'link') })).rejects.toMatchObject({ code: 'export.target' });
    expect(await readFile(join(folder, 'thesis.tex'), 'utf8')).toBe('mine');
  });

  proves('export:whole-or-absent', 'fills an empty folder, and clears what a killed export left', async () => {
    await mkdir(join(`${folder}.aerie-partial`, 'tokens'), { recursive: true });
    await writeFile(join(`${folder}.aerie-partial`, 'tokens', 'B1.tokens-00000.jsonl'), '{"id":');
    await mkdir(join(`${folder}.aerie-old`, 'tokens'), { recursive: true });
    await mkdir(folder);
    await exportRun({ sources: [source('B1', many(2))], target: 'specforge', folder });
    expect(readExport(folder, limits)).toMatchObject({ findings: [] });
    expect(await readdir(join(root, 'export'))).toEqual(['specforge', 'specforge.manifest.txt']);
  });

  proves(
    'export:whole-or-absent',
    'leaves the old export whole when the records end in an error or the signal comes',
    async () => {
      const request = { sources: [source('B1', many(4))], target: 'specforge', folder } as const;
      await exportRun(request);
      const torn = {
        partition: 'B1',
        async *open() {
          yield* many(2);
          throw new Error('shard 3 is gone');
        },
      };
      await expect(exportRun({ ...request, sources: [torn] })).rejects.toThrow('shard 3 is gone');
      await expect(exportRun({ ...request, signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped');
      expect(readExport(folder, limits).tokenRows).toHaveLength(4);
      expect(await readdir(join(root, 'export'))).toEqual(['specforge', 'specforge.manifest.txt']);
    },
  );

  it('says which disk error it was', async () => {
    await writeFile(join(root, 'file'), '');
    const below = join(root, 'file', 'export');
    await expect(exportRun({ sources: [], target: 'specforge', folder: below })).rejects.toMatchObject({ code: 'disk.failed' });
    if (process.getuid?.() === 0) return; // root may write anywhere
    await chmod(root, 0o500);
    await expect(exportRun({ sources: [], target: 'specforge', folder })).rejects.toMatchObject({ code: 'disk.read-only' });
    await chmod(root, 0o700);
  });

  it('is right for any right records, whatever the part size', async () => {
    const records = fc.uniqueArray(anyRecord, { selector: (record) => record.id, minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(records, fc.integer({ min: 1, max: 4000 }), async (some, partBytes) => {
        const result = await exportRun({
          sources: [source('B1', some)],
          target: 'specforge',
          folder,
          partBytes,
          vocabularySize: 100,
        });
        const read = readExport(folder, limits);
        expect(read.findings).toEqual([]);
        expect(read.conversationRows).toHaveLength(some.length);
        expect(result.partitions[0]?.supervisedTokens).toBe(
          some.flatMap((record) => record.turns.flatMap((turn) => turn.outputIds)).length,
        );
      }),
      { numRuns: runs(25) },
    );
  });
});
