/** The rules that a run keeps: those of its file, and those that were added while it had begun. */
import type { Ledger } from '../ledger/ledger.ts';
import type { PolicyRule, RunSpec } from '../spec/run.ts';
import { renderCanonical } from '../spec/identity.ts';

/** A rule that stands in both counts once. */
export function policyInForce(run: RunSpec, ledger: Pick<Ledger, 'addedRules'>): readonly PolicyRule[] {
  const written = new Set(run.policy.map(renderCanonical));
  const added = ledger.addedRules().map(({ rule }) => rule);
  return [...run.policy, ...added.filter((rule) => !written.has(renderCanonical(rule)))];
}
