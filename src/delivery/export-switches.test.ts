/** The switches of an export: held-out prompts, the extended mask, findings left out, counts and the draft vocabulary. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { readExport } from '../../test/support/read-export.mjs';
import { anyRecord, continuingTurns, sampleRecord, streamOf } from '../../test/support/sample-records.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { chooseDraftVocabulary, hashCounts } from './draft-vocabulary.ts';
import { exportNotes } from './export-manifest.ts';
import { type ExportRequest, exportRun } from './export-run.ts';
import { isHeldOut } from './held-out.ts';
import { renderBoolNpy, renderInt64Npy } from './npy.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'aerie-switches-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const many = (count: number) => Array.from({ length: count }, (_, at) => sampleRecord({ id: `id${at}` }));

async function write(records: readonly TrainingRecord[], change: Partial<ExportRequest> = {}) {
  const folder = join(root, 'out');
  const sources = [{ partition: 'B1', open: () => streamOf(records) }];
  const result = await exportRun({ sources, target: 'specforge', folder, vocabularySize: 100, ...change });
  return { folder, result, read: readExport(folder, { vocabularySize: 100, extendedMask: change.extendMask ?? false }) };
}

describe('held-out prompts', () => {
  it('are in a folder of their own, and nowhere twice', async () => {
    const { folder, read, result } = await write(many(200), { heldOut: 0.2 });
    expect(read.findings).toEqual([]);
    expect(await readdir(folder)).toEqual(['held-out', 'train']);
    expect(read.tokenRows).toHaveLength(200);
    const heldOut = readExport(join(folder, 'held-out')).tokenRows.map((row) => row.primary_id);
    expect(heldOut).toEqual(
      many(200)
        .map(({ id }) => id)
        .filter((id) => isHeldOut(id, 0.2)),
    );
    expect(result.partitions[0]?.heldOutRecords).toBe(heldOut.length);
    expect(exportNotes(result).join()).toContain('train/');
  });

  it('are the same for every trainer, and stay held out when the share grows', async () => {
    await write(many(60), { heldOut: 0.2 });
    const first = readExport(join(root, 'out', 'held-out')).conversationRows.map((row) => row.id);
    await write(many(60), { heldOut: 0.2, target: 'modelopt' });
    expect(readExport(join(root, 'out', 'held-out')).messageRows.map((row) => row.conversation_id)).toEqual(first);
    fc.assert(
      fc.property(
        fc.string(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (id, a, b) => {
          if (isHeldOut(id, Math.min(a, b))) expect(isHeldOut(id, Math.max(a, b))).toBe(true);
          expect([isHeldOut(id, 0), isHeldOut(id, 1)]).toEqual([false, true]);
        },
      ),
    );
  });

  it('are about as many as were asked for', () => {
    const held = Array.from({ length: 20_000 }, (_, at) => `prompt ${at}`).filter((id) => isHeldOut(id, 0.05)).length;
    expect(Math.abs(held - 1000)).toBeLessThan(150); // five standard deviations of 31
  });
});

describe('the extended mask', () => {
  it('adds the token before each answer and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(anyRecord, { selector: ({ id }) => id, minLength: 1, maxLength: 5 }), async (records) => {
        const plain = (await write(records)).read.tokenRows;
        const { read } = await write(records, { extendMask: true });
        expect(read.findings).toEqual([]);
        for (const [at, row] of read.tokenRows.entries()) {
          const mask = plain[at]?.loss_mask ?? [];
          expect(row.loss_mask).toEqual(mask.map((bit, place) => (bit === 1 || mask[place + 1] === 1 ? 1 : 0)));
        }
      }),
      { numRuns: runs(15) },
    );
  });
});

describe('findings', () => {
  it('leave records out, with counts, also records that cannot be read', async () => {
    const torn = { partition: 'B1', id: 'torn', unreadable: 'its sha256 is another' };
    const sources = [{ partition: 'B1', open: () => streamOf([...many(5), torn]) }];
    const withheldBecause = ({ id }: { id: string }) =>
      id === 'torn' ? 'record-unreadable' : id === 'id3' || id === 'id1' ? 'truncated' : undefined;
    const { result, read } = await write([], { sources, withheldBecause });
    expect(read.tokenRows.map((row) => row.primary_id)).toEqual(['id0', 'id2', 'id4']);
    expect(result.partitions[0]).toMatchObject({ records: 3, withheld: { truncated: 2, 'record-unreadable': 1 } });
    expect(exportNotes(result)).toContain('B1: 2 records left out: truncated.');
  });
});

describe('counts', () => {
  const turns = continuingTurns([
    [20, 20, 7, 2],
    [20, 2],
  ]);

  it('are of the tokens the model wrote, beside the folder, and gone with the export they belong to', async () => {
    const { folder, result } = await write([sampleRecord({ turns })], {
      counts: { draftVocabulary: 2, vocabularySize: 100 },
      extendMask: true,
    });
    expect(JSON.parse(await readFile(`${folder}.counts/token_counts.json`, 'utf8'))).toEqual({ 2: 2, 7: 1, 20: 3 });
    expect(result.counts).toMatchObject({ tokens: 6, distinct: 3, coverage: 5 / 6 });
    expect(await readdir(`${folder}.counts`)).toEqual([
      'd2t.npy',
      'draft_vocabulary.json',
      't2d.npy',
      'token_counts.json',
      'token_counts.npy',
    ]);
    expect(await readFile(result.manifest, 'utf8')).toContain('covers 83.33 %');
    await write([sampleRecord({ turns })]);
    expect(await readdir(root)).toEqual(['out', 'out.manifest.txt']);
  });

  it('do not count what is held out', async () => {
    const { result } = await write(many(50), { heldOut: 0.3, counts: { draftVocabulary: 0, vocabularySize: 0 } });
    expect(result.counts?.tokens).toBe(3 * (50 - (result.partitions[0]?.heldOutRecords ?? 0)));
  });

  it('are the same for a trainer that gets no token rows', async () => {
    const counts = { draftVocabulary: 3, vocabularySize: 100 };
    const first = (await write([sampleRecord({ turns })], { counts })).result.counts;
    expect((await write([sampleRecord({ turns })], { counts, target: 'modelopt' })).result.counts).toEqual(first);
  });

  it('refuse a map without a target vocabulary, or larger than it, before anything is written', async () => {
    for (const vocabularySize of [0, 10]) {
      await expect(write(many(1), { counts: { draftVocabulary: 11, vocabularySize } })).rejects.toMatchObject({
        code: 'usage.flag',
      });
    }
    expect(await readdir(root)).toEqual([]);
  });
});

describe('the draft vocabulary', () => {
  const countsOf = fc
    .array(fc.tuple(fc.nat(49), fc.integer({ min: 1, max: 5 })), { maxLength: 40 })
    .map((pairs) => new Map(pairs));

  it('holds the most frequent tokens, ties to the smaller id, whatever the order they came in', () => {
    fc.assert(
      fc.property(countsOf, fc.integer({ min: 1, max: 50 }), (counts, size) => {
        const map = chooseDraftVocabulary(counts, size, 50);
        const ids = map.d2t.map((offset, at) => at + offset);
        const expected = Array.from({ length: 50 }, (_, id) => id)
          .sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || a - b)
          .slice(0, size);
        expect(ids).toEqual(expected.sort((a, b) => a - b));
        expect(map.t2d.flatMap((held, id) => (held ? [id] : []))).toEqual(ids);
        const reversed = new Map([...counts].reverse());
        expect(chooseDraftVocabulary(reversed, size, 50)).toEqual(map);
        expect(hashCounts(reversed, size, 50)).toBe(hashCounts(counts, size, 50));
      }),
    );
  });

  it('has another hash when a count or a size is another', () => {
    const counts = new Map([[3, 1]]);
    const hashes = [
      hashCounts(counts, 2, 9),
      hashCounts(counts, 3, 9),
      hashCounts(counts, 2, 10),
      hashCounts(new Map([[3, 2]]), 2, 9),
    ];
    expect(new Set(hashes).size).toBe(4);
  });
});

describe('NumPy files', () => {
  it('have the header that the format asks for, and little-endian values after it', () => {
    const bytes = renderInt64Npy([1, -2]);
    const length = bytes.readUInt16LE(8);
    expect((10 + length) % 64).toBe(0);
    expect(bytes.subarray(10, 10 + length).toString()).toMatch(
      /^\{'descr': '<i8', 'fortran_order': False, 'shape': \(2,\), \} *\n$/,
    );
    expect([bytes.readBigInt64LE(10 + length), bytes.readBigInt64LE(18 + length)]).toEqual([1n, -2n]);
    expect([...renderBoolNpy([true, false, true]).subarray(-3)]).toEqual([1, 0, 1]);
  });

  const python = process.env['AERIE_TEST_PYTHON'] ?? 'python3';
  const hasNumpy = spawnSync(python, ['-c', 'import numpy']).status === 0;
  it.skipIf(!hasNumpy && process.env['AERIE_REQUIRE_ALL'] !== '1')('are read by NumPy itself', async () => {
    const { folder } = await write(many(3), { counts: { draftVocabulary: 5, vocabularySize: 100 } });
    const script =
      'import numpy,sys,json; d,t,c=[numpy.load(f"{sys.argv[1]}/{n}.npy",allow_pickle=False) for n in ("d2t","t2d","token_counts")];' +
      'print(json.dumps([str(d.dtype),str(t.dtype),str(c.dtype),(d+numpy.arange(len(d))).tolist(),numpy.nonzero(t)[0].tolist(),len(t),int(c.sum())]))';
    const { stdout } = spawnSync(python, ['-c', script, `${folder}.counts`], { encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual(['int64', 'bool', 'int64', [0, 1, 2, 20, 21], [0, 1, 2, 20, 21], 100, 9]);
  });
});
