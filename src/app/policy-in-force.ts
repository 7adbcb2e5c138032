/** The rules that a run keeps: those of its file, and those that were added while it had begun. */
import { AerieError } from '../base/errors.ts';
import type { Host } from '../host/host.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { renderCanonical } from '../spec/identity.ts';
import type { PolicyRule, RunSpec } from '../spec/run.ts';
import { openForReading } from './read-run.ts';

/** A rule that stands in both counts once. */
export function policyInForce(run: RunSpec, ledger: Pick<Ledger, 'addedRules'>): readonly PolicyRule[] {
  const written = new Set(run.policy.map(renderCanonical));
  const added = ledger.addedRules().map(({ rule }) => rule);
  return [...run.policy, ...added.filter((rule) => !written.has(renderCanonical(rule)))];
}

/** The same without taking the run: one that has not begun has the rules of its file. */
export async function rulesOf(argument: string, run: RunSpec, host: Host): Promise<readonly PolicyRule[]> {
  const opened = await openForReading(argument, host).catch((thrown: unknown) => {
    if (thrown instanceof AerieError && thrown.code === 'run.absent') return undefined;
    throw thrown;
  });
  if (opened === undefined) return run.policy;
  try {
    return policyInForce(run, opened.ledger);
  } finally {
    opened.ledger.close();
  }
}
