/** `aerie status`: what is done, set aside and refused, and why. Reads only, also while a worker writes. */
import type { AsideReason } from '../base/aside-reason.ts';
import type { Event } from '../base/events.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { describeRule } from '../spec/policy.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { followRun } from './follow-run.ts';
import { type LivingLaunch, launchHistory, livingLaunches } from './launch-history.ts';
import { type PartitionReport, reportPartitions } from './partition-report.ts';
import { policyInForce } from './policy-in-force.ts';
import { openForReading } from './read-run.ts';
import { type Worker, workerOf } from './worker-of.ts';

export interface StatusInput {
  readonly run: string;
  /** Watches the worker until it ends, and then ends as the run has. */
  readonly follow?: boolean;
}

export interface StatusReport {
  readonly run: string;
  readonly folder: string;
  readonly partitions: readonly PartitionReport[];
  /** Prompts that were set aside, the first of them. */
  readonly setAsides: readonly {
    readonly partition: string;
    readonly id: string;
    readonly reason: AsideReason;
    readonly because: string;
  }[];
  /** Rules in force: those of the run file, and those that were added later. */
  readonly rules: readonly {
    readonly rule: string;
    readonly because: string;
    readonly by: string;
    /** Epoch milliseconds; 0 = it stands in the run file. */
    readonly addedAt: number;
  }[];
  /** What happened to the servers that Aerie launched, all of it, oldest first. */
  readonly history: readonly Event[];
  /** Launches that run now. */
  readonly living: readonly LivingLaunch[];
  /** Who works on it now. */
  readonly worker?: Worker;
  /** Attempts by outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Nothing is left to do, as far as is known without looking at the sources. */
  readonly isFinished: boolean;
}

/** A person reads a screen; `--json` readers find all of them in the ledger. */
const MOST_SHOWN = 20;

export async function runStatus(input: StatusInput, context: OperationContext): Promise<StatusReport> {
  const { run, ledger } = await openForReading(input.run, context.host);
  try {
    if (input.follow === true) await followRun({ run, ledger, argument: input.run }, context);
    const worker = await workerOf(run.folder);
    const partitions = await reportPartitions(ledger, run.folder);
    const setAsides = partitions.flatMap(({ name }) => ledger.setAsides(name, MOST_SHOWN)).slice(0, MOST_SHOWN);
    const isFinished = partitions.every(
      ({ waiting, leased, redoing, enrolment, budget, spentTokens }) =>
        (enrolment !== 'open' && waiting + leased === 0) || (budget > 0 && spentTokens >= budget && redoing === 0),
    );
    return {
      ...{ run: run.name, folder: run.folder, partitions, setAsides, rules: rulesOf(run, ledger) },
      ...{ history: launchHistory(ledger), living: await livingLaunches(run, context) },
      ...(worker === undefined ? {} : { worker }),
      ...{ outcomes: ledger.outcomeCounts(), isFinished },
    };
  } finally {
    ledger.close();
  }
}

function rulesOf(run: RunSpec, ledger: Ledger): StatusReport['rules'] {
  const added = new Map(ledger.addedRules().map(({ rule, at }) => [JSON.stringify(rule), at]));
  return policyInForce(run, ledger).map((rule, place) => ({
    ...{ rule: describeRule(rule), because: rule.because, by: rule.by },
    addedAt: place < run.policy.length ? 0 : (added.get(JSON.stringify(rule)) ?? 0),
  }));
}
