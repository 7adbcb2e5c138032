/** Where Aerie keeps what it has fetched: AERIE_CACHE, else `aerie` in the cache folder of the user. */
import { isAbsolute, join } from 'node:path';
import { homeFolderOf } from './home-folder.ts';

export function cacheFolderOf(env: Readonly<Record<string, string | undefined>>): string {
  const named = env['XDG_CACHE_HOME'] ?? '';
  // The XDG specification: a path that is not absolute is to be ignored.
  return env['AERIE_CACHE'] || join(isAbsolute(named) ? named : join(homeFolderOf(env), '.cache'), 'aerie');
}
