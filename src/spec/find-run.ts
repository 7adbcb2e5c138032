/** Where a run keeps its folder. Pure: paths in, path out; whether anything is there is the caller's question. */
import { dirname, join } from 'node:path';

/** `runs/NAME` beside the run file, so that a project folder can be moved as a whole. */
export function runFolderOf(file: string, name: string): string {
  return join(dirname(file), 'runs', name);
}
