/**
 * A rule that comes to a run that has begun: the records that break it are withdrawn, and the run's own account of what its
 * servers are is taken from the launches that are left. For the holder of the run alone; a second call changes nothing.
 */
import type { Event, Fact } from '../../base/events.ts';
import type { ServerFacts } from '../../engine/dialect.ts';
import type { Ledger, Withdrawal, WithdrawnPart } from '../../ledger/ledger.ts';
import { describeRule } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { findBroken } from './judge-launches.ts';
import type { UnkeptRule } from './keep-rule.ts';

/** What a rule did; plain data, because one process tells it to another. */
export interface RuleOutcome {
  readonly rule: string;
  readonly because: string;
  readonly by: string;
  /** Launches that break it. */
  readonly launches: readonly { readonly launch: number; readonly server: string; readonly because: string }[];
  readonly records: number;
  readonly prompts: number;
  readonly tokens: number;
  readonly partitions: readonly WithdrawnPart[];
  /** Servers whose flags no change makes keep it. */
  readonly unkept: readonly UnkeptRule[];
}

export interface AppliedRule {
  readonly outcome: RuleOutcome;
  readonly events: readonly Event[];
}

/**
 * Adds the rule and withdraws what breaks it, in one transaction. Nobody may have a lease. A death right after it (`added`) is
 * mended by the next start, which calls `withdrawBroken`.
 */
export function applyRule(rule: PolicyRule, ledger: Ledger, added: () => void = () => undefined): AppliedRule {
  const broken = findBroken(rule, ledger.launches());
  const withdrawal = ledger.addRule(rule, idsOf(broken));
  added();
  forgetWithdrawn(ledger);
  return { outcome: outcomeOf(rule, broken, withdrawal), events: withdrawal.events };
}

/** At a start: a rule may have come by the run file, and launches may be there from before it. */
export function withdrawBroken(rules: readonly PolicyRule[], ledger: Ledger): readonly Event[] {
  const events = rules.flatMap((rule) => {
    const broken = findBroken(rule, ledger.launches());
    return broken.length === 0 ? [] : ledger.withdraw(idsOf(broken), rule.because).events;
  });
  forgetWithdrawn(ledger);
  return events;
}

const LAUNCH_FACTS = ['model', 'revision', 'weights', 'kvCacheDtype', 'templateHash'] as const;

/** Else the next server would be refused because it is not like the one whose records are gone. */
function forgetWithdrawn(ledger: Ledger): void {
  const launches = ledger.launches();
  if (!launches.some(({ isWithdrawn }) => isWithdrawn)) return;
  const before = ledger.identity();
  const last = launches.findLast(({ isWithdrawn }) => !isWithdrawn);
  const others = Object.entries(before).filter(([key]) => !LAUNCH_FACTS.some((fact) => key === `launch.${fact}`));
  const now = Object.fromEntries([...others, ...(last === undefined ? [] : factsOf(last.detail))]);
  if (JSON.stringify(sorted(now)) !== JSON.stringify(sorted(before))) ledger.setIdentity(now);
}

function factsOf(detail: string): [string, Fact][] {
  const { facts } = JSON.parse(detail) as { facts?: ServerFacts }; // written by our own admission
  return facts === undefined ? [] : LAUNCH_FACTS.map((key) => [`launch.${key}`, facts[key]]);
}

function sorted(facts: Readonly<Record<string, Fact>>): [string, Fact][] {
  return Object.entries(facts).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function idsOf(broken: ReturnType<typeof findBroken>): number[] {
  return broken.map(({ launch }) => launch.id);
}

function outcomeOf(rule: PolicyRule, broken: ReturnType<typeof findBroken>, withdrawal: Withdrawal): RuleOutcome {
  const { records, prompts, tokens, partitions } = withdrawal;
  return {
    ...{ rule: describeRule(rule), because: rule.because, by: rule.by },
    launches: broken.map(({ launch, because }) => ({ launch: launch.id, server: launch.server, because })),
    ...{ records, prompts, tokens, partitions, unkept: [] },
  };
}
