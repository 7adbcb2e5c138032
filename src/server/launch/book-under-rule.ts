/**
 * What a rule that came later makes of the book of one server: the change that keeps it, for the launches to come. Pure.
 * Promises: everything else that the launch has gained stays; each rule is noted in the book, so that what a person writes after it is
 * that person's and is judged as it stands.
 */
import type { Facts } from '../../base/events.ts';
import { describeRule } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { describeChange, isSameFlag } from '../recovery/changes.ts';
import { type KeptChange, keepChanges } from '../recovery/kept-changes.ts';
import type { Flags } from '../recovery/recovery.ts';
import { withoutLever } from '../recovery/without-lever.ts';
import type { LaunchRecord, ServerBook } from './launch-book.ts';
import type { LauncherOptions } from './launcher-options.ts';

export interface BookUnderRule {
  readonly book: ServerBook;
  /** Facts of `launch.changed`; undefined = nothing changes. */
  readonly changed?: Facts;
  /** Why no flag keeps the rule; '' = one does, or these flags do. */
  readonly cannot: string;
}

type Known = Pick<LauncherOptions, 'engine' | 'given' | 'version' | 'policy' | 'basis' | 'limits'>;

/** `flags`: those of the next launch as the book has it now. */
export function bookUnderRule(rule: PolicyRule, book: ServerBook, flags: Flags, known: Known): BookUnderRule {
  const { engine, given, policy, basis, limits } = known;
  const noted = noteRule(rule, book);
  const without = withoutLever({
    ...{ engine, version: known.version(), flags, rule, policy: policy(), basis: basis(), limits: limits() },
  });
  if ('cannot' in without) return { book: noted, cannot: without.cannot };
  const { changes, predicted } = without;
  if (changes.length === 0) return { book: noted, cannot: '' };
  const because = `${describeRule(rule)}, ${rule.because} (decided by ${rule.by}); ${without.because}`;
  return {
    book: { ...noted, kept: keepChanges({ engine, kept: book.kept, given, changes, by: 'policy' }) },
    changed: { launch: book.launches + 1, because, changes: changes.map(describeChange).join(', '), ...predicted },
    cannot: '',
  };
}

export function isNoted(rule: PolicyRule, { rules = [] }: ServerBook): boolean {
  return rules.includes(describeRule(rule));
}

export function noteRule(rule: PolicyRule, book: ServerBook): ServerBook {
  return isNoted(rule, book) ? book : { ...book, rules: [...(book.rules ?? []), describeRule(rule)] };
}

/** Why a launch that lives is not the one that is wanted. */
export function sayChanged({ flags }: Pick<LaunchRecord, 'flags'>, byRule: readonly KeptChange[]): string {
  const changed = byRule.filter(({ name, to }) => {
    const written = Object.keys(flags).findLast((one) => isSameFlag(one, name));
    return String(written === undefined ? undefined : flags[written]) !== String(to);
  });
  if (changed.length === 0) return 'the run file has other flags now';
  return `a rule has changed its ${changed.map(({ name }) => name).join(', ')}`;
}
