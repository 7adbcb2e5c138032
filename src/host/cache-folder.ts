/** Where Aerie keeps what it has fetched: AERIE_CACHE, else `aerie` in the cache folder of the user. */
import { homedir } from 'node:os';
import { join } from 'node:path';

export function cacheFolderOf(env: Readonly<Record<string, string | undefined>>): string {
  return env['AERIE_CACHE'] || join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'aerie');
}
