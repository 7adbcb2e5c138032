/**
 * One rule of policy in the words of the run file, given on a command line or handed from one process to another → a
 * `PolicyRule`, by the same schema. Pure.
 * On failure: AerieError `usage.flag` with one line of evidence per mistake, as `--forbid kv-cache  is "fp8"; it must be …`.
 */
import { AerieError } from '../base/errors.ts';
import { crossCheck } from './cross-check.ts';
import { explainIssues } from './explain-issue.ts';
import { leaveOutRepeated, type Path, renderPath } from './problem.ts';
import { quoteText } from './quote.ts';
import { resolveRule } from './resolve-run.ts';
import type { PolicyRule } from './run.ts';
import { runFile } from './run-file.ts';

export const RULE_VERBS = ['forbid', 'require', 'min', 'max'] as const;
export type RuleVerb = (typeof RULE_VERBS)[number];

/** `--forbid kv-cache=below-16-bit`: for each verb what stands behind it, as often as it is given. */
export type RuleWords = Readonly<Partial<Record<RuleVerb, readonly string[]>>> & {
  readonly because: string;
  readonly by: string;
};

/** Everything else of a run file, so that a rule is judged in its place. */
const AROUND = { run: 'r', model: 'default', partitions: [{ name: 'p', from: 'p.jsonl' }] };

/** The rule as it would stand in a run file; what cannot stand there is told by `readRule`. */
export function writeRule({ because, by, ...verbs }: RuleWords): object {
  const parts = RULE_VERBS.flatMap((verb) => (verbs[verb] === undefined ? [] : [[verb, writePart(verb, verbs[verb])] as const]));
  return { ...Object.fromEntries(parts), because, by };
}

function writePart(verb: RuleVerb, words: readonly string[]): object {
  const entries = words.map((word): [string, string | number] => {
    const [, subject = '', value = ''] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
    if (subject === '') throw wrong([`--${verb} ${quoteText(word)}  is no SUBJECT=VALUE, as kv-cache=below-16-bit`]);
    return [subject, /^\d+(\.\d+)?$/.test(value) ? Number(value) : value];
  });
  const twice = entries.find(([subject], at) => entries.findIndex(([other]) => other === subject) < at);
  if (twice !== undefined) throw wrong([`--${verb} ${quoteText(twice[0])}  is given twice; keep one of them`]);
  return Object.fromEntries(entries);
}

/** From a rule as it is written in a run file, whoever wrote it. */
export function readRule(written: unknown): PolicyRule {
  const file = { ...AROUND, policy: [written] };
  const parsed = runFile.safeParse(file);
  const problems = leaveOutRepeated([...explainIssues(parsed.error?.issues ?? [], file), ...crossCheck(file)]);
  const rule = parsed.data?.policy[0];
  if (rule === undefined || problems.length > 0) throw wrong(problems.map(({ path, message }) => `${nameOf(path)}  ${message}`));
  return resolveRule(rule);
}

/** `policy[0].forbid.kv-cache` is `--forbid kv-cache` on a command line. */
function nameOf(path: Path): string {
  const [verb, ...rest] = path.slice(2);
  return verb === undefined ? 'the rule' : [`--${renderPath([verb])}`, ...(rest.length > 0 ? [renderPath(rest)] : [])].join(' ');
}

function wrong(evidence: readonly string[]): AerieError {
  return new AerieError('usage.flag', 'This is no rule of policy.', {
    evidence,
    remedy:
      'Write it as in a run file: aerie policy add RUN --forbid kv-cache=below-16-bit --because "…" --by "…"\n' +
      'Subjects are in docs/policy.md. Nothing was changed.',
  });
}
