/**
 * Whether the real default model can be had: the file in AERIE_TEST_MODEL, or the cache, where `node
 * dist/programs/fetch-model.js` puts it. Nothing is downloaded here. With AERIE_REQUIRE_ALL=1 a test that lacks it fails
 * instead of being skipped.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { DEFAULT_MODEL } from '../../src/server/default-model.ts';

export const REQUIRE_ALL = process.env['AERIE_REQUIRE_ALL'] === '1';

/** The path of the model's file, or undefined. */
export function findRealModel(): string | undefined {
  const given = process.env['AERIE_TEST_MODEL'];
  if (given !== undefined && given !== '') return existsSync(given) ? given : undefined;
  const cache = process.env['AERIE_CACHE'] || join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'aerie');
  const names = [DEFAULT_MODEL.hub.file, basename(DEFAULT_MODEL.wheel.member)];
  return names.map((name) => join(cache, 'models', name)).find((path) => existsSync(path));
}

/** For `test.skipIf`: never skips where everything is required. */
export const lacksRealModel = findRealModel() === undefined && !REQUIRE_ALL;

export const NEEDS_REAL_MODEL = '(needs the default model: node dist/programs/fetch-model.js)';

export function realModel(): string {
  const path = findRealModel();
  if (path === undefined)
    throw new Error('AERIE_REQUIRE_ALL=1, and the default model is not there: node dist/programs/fetch-model.js');
  return path;
}
