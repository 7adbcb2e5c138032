/**
 * Token counts and the draft-vocabulary map, in `NAME.counts/` beside the export (inside it a loader would take them for data).
 *
 *   token_counts.json     {"id": count} over the tokens that the model wrote; held-out ones are not counted
 *   token_counts.npy      int64, one entry an id of the vocabulary; only where its size is known
 *   d2t.npy  t2d.npy      draft id → offset to the target id (int64); target id → in the draft vocabulary (bool)
 *   draft_vocabulary.json sizes, coverage, and the hash of everything the map follows from
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AerieError } from '../base/errors.ts';
import { chooseDraftVocabulary, hashCounts, sortCounts, type TokenCounts, totalOf } from './draft-vocabulary.ts';
import { renderBoolNpy, renderInt64Npy } from './npy.ts';

export interface CountsRequest {
  /** 0 = counts alone. */
  readonly draftVocabulary: number;
  /** Of the target model; 0 = unknown. */
  readonly vocabularySize: number;
}

export interface CountsResult {
  readonly folder: string;
  readonly tokens: number;
  readonly distinct: number;
  readonly draftVocabulary: number;
  readonly vocabularySize: number;
  /** Of the counted tokens, those that the draft vocabulary holds; 0 without one. */
  readonly coverage: number;
  readonly hash: string;
}

/** Refused before anything is read: a map cannot be made, or would be cut to a size that is no one's. */
export function refuseCounts({ draftVocabulary, vocabularySize }: CountsRequest): void {
  if (draftVocabulary === 0) return;
  if (vocabularySize === 0) {
    throw new AerieError(
      'usage.flag',
      'A draft vocabulary needs the size of the target vocabulary, which the server did not say.',
      {
        remedy: 'Add --target-vocab N, with vocab_size of the config.json of the model. Nothing was written.',
      },
    );
  }
  if (draftVocabulary > vocabularySize) {
    throw new AerieError('usage.flag', `--draft-vocab ${draftVocabulary} is larger than the vocabulary of ${vocabularySize}.`, {
      remedy: 'Give a smaller one; 32000 is usual. Nothing was written.',
      facts: { draftVocabulary, vocabularySize },
    });
  }
}

/** `into` is where the files are written, `folder` where they will be in the end. */
export async function writeCounts(
  counts: TokenCounts,
  request: CountsRequest,
  place: { readonly into: string; readonly folder: string },
): Promise<CountsResult> {
  const { draftVocabulary, vocabularySize } = request;
  await mkdir(place.into, { recursive: true });
  const write = (name: string, content: string | Buffer) => writeFile(join(place.into, name), content, { flush: true });
  const result = {
    folder: place.folder,
    tokens: totalOf(counts),
    distinct: counts.size,
    draftVocabulary,
    vocabularySize,
    coverage: 0,
    hash: hashCounts(counts, draftVocabulary, vocabularySize),
  };
  // Written by hand: an object in JavaScript puts keys that look like numbers in an order of its own.
  await write(
    'token_counts.json',
    `{${sortCounts(counts)
      .map(([id, count]) => `"${id}": ${count}`)
      .join(', ')}}\n`,
  );
  if (vocabularySize > 0) {
    await write('token_counts.npy', renderInt64Npy(Array.from({ length: vocabularySize }, (_, id) => counts.get(id) ?? 0)));
  }
  if (draftVocabulary === 0) return result;
  const { d2t, t2d, coverage } = chooseDraftVocabulary(counts, draftVocabulary, vocabularySize);
  await write('d2t.npy', renderInt64Npy(d2t));
  await write('t2d.npy', renderBoolNpy(t2d));
  const said = { draftVocabulary, targetVocabulary: vocabularySize, tokens: result.tokens, coverage, hash: result.hash };
  await write('draft_vocabulary.json', `${JSON.stringify(said, undefined, 2)}\n`);
  return { ...result, coverage };
}
