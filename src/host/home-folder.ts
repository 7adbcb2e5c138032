/**
 * The user's home folder here. `docker run --user 12345` and many clusters give a number that no table of users knows, and sometimes
 * no HOME: then it is `/`, as docker itself sets it, where reading finds nothing and writing says that it may not.
 */
import { homedir } from 'node:os';

export function homeFolderOf(env: Readonly<Record<string, string | undefined>>, ask: () => string = homedir): string {
  if (env['HOME']) return env['HOME'];
  try {
    return ask() || '/';
  } catch {
    return '/';
  }
}
