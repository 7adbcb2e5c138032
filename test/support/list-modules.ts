/** Which modules a command loads: a hook of node that prints the URL of each on stderr. */
export const LIST_MODULES = `data:text/javascript,${encodeURIComponent(`
import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(\`
  import { writeSync } from 'node:fs';
  export async function load(url, context, next) { writeSync(2, 'loads ' + url + '\\\\n'); return next(url, context); }
\`));
`)}`;

/** The URLs of files in what the hook printed. */
export function modulesIn(stderr: string): string[] {
  return stderr.split('\n').flatMap((line) => /^loads (file:.*)$/.exec(line)?.[1] ?? []);
}
