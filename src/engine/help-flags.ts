/**
 * The flags that a launcher says it knows, from its own `--help` (argparse's text). Pure; untrusted text.
 * Promises: only names that the text defines, never those that its explanations mention; a text that does not list all flags (vLLM's
 * short help, an error) is told apart from one that does.
 */
import type { EngineName } from './dialect.ts';

/** `[--tp-size TP]` of the usage, and `  --tp-size TP, --tp TP` where each is explained. */
const USAGE = /\[(-[^\]]*)\]/g;
const NAME = /(?:^|[\s,|[(])(--?[A-Za-z][\w.-]*)/g;

export function parseHelpFlags(help: string): ReadonlySet<string> {
  const names = new Set<string>();
  const collect = (text: string) => {
    for (const [, name = ''] of text.matchAll(NAME)) names.add(name.replace(/^-+/, ''));
  };
  // What is imported first may print whatever it likes.
  const from = help.search(/^usage:/m);
  // An error under the usage quotes what was written, not what is known.
  const text = from === -1 ? '' : (help.slice(from).split(/^\S+: error: /m)[0] ?? '');
  const [usage = '', ...rest] = text.split(/\n\s*\n/);
  for (const [, part = ''] of usage.matchAll(USAGE)) collect(part.replaceAll(/\{[^}]*\}?/g, ''));
  // A required flag has no brackets.
  collect(usage.replaceAll(/\[[^\]]*\]|\{[^}]*\}/g, ' '));
  for (const line of rest.join('\n').split('\n')) {
    // A definition begins at the margin of its list; explanations stand deeper or after two spaces.
    const defined = /^ {1,8}(-.*)$/.exec(line)?.[1];
    if (defined !== undefined) collect((defined.split(/ {2,}/)[0] ?? '').replaceAll(/\{[^}]*\}?/g, ''));
  }
  return names;
}

/** Flags that every version has: a text without them is not the whole list. */
const ALWAYS: Readonly<Partial<Record<EngineName, readonly string[]>>> = {
  sglang: ['model-path', 'mem-fraction-static', 'host', 'port'],
  vllm: ['tensor-parallel-size', 'gpu-memory-utilization', 'max-model-len', 'port'],
};

export function isWholeHelp(engine: EngineName, names: ReadonlySet<string>): boolean {
  const always = ALWAYS[engine] ?? [];
  return always.length > 0 && always.every((name) => names.has(name));
}

export type FlagStanding = 'known' | 'unknown' | 'ambiguous';

/** As argparse takes it: exact, or the beginning of one name alone. `name` without dashes. */
export function standingOf(engine: EngineName, name: string, names: ReadonlySet<string>): FlagStanding {
  // vLLM takes underscores for dashes, and `--compilation-config.level` for a field of a flag's JSON.
  const plain = engine === 'vllm' ? (name.replaceAll('_', '-').split('.')[0] ?? '') : name;
  if (names.has(plain)) return 'known';
  if (plain.length < 2) return 'unknown';
  const begun = [...names].filter((one) => one.startsWith(plain));
  if (begun.length === 0) return 'unknown';
  return begun.length === 1 ? 'known' : 'ambiguous';
}
