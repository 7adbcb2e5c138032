/**
 * `aerie policy add`: a rule for a run that has begun. What launches made that break it is withdrawn: never exported, its tokens
 * back in the budget, its prompts to be asked again. Where a worker holds the run, the worker is asked to do it.
 */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { AerieError } from '../base/errors.ts';
import type { Event, Happening } from '../base/events.ts';
import { openSqliteLedger } from '../ledger/sqlite/open-ledger.ts';
import { type HeldRun, holdRun } from '../ledger/sqlite/worker-lock.ts';
import { openRunLog } from '../observe/run-log.ts';
import { type RuleWords, readRule, writeRule } from '../spec/read-rule.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { askWorker } from './control.ts';
import { plantCrash } from './crash-points.ts';
import { findRun } from './find-run.ts';
import { applyRule, type RuleOutcome } from './policy/apply-rule.ts';
import { keepRule } from './policy/keep-rule.ts';

export type PolicyAddInput = RuleWords & {
  /** Run file or run folder. */
  readonly run: string;
};

export interface PolicyAddReport extends RuleOutcome {
  readonly run: string;
  readonly folder: string;
  /** The worker of the run has done it, and goes on under the rule. */
  readonly byWorker: boolean;
}

/** A drain of long answers and the load of a large model; whoever waits sees it, and may stop waiting. */
const WORKER_LIMIT_MS = 30 * 60_000;

export async function runPolicyAdd(input: PolicyAddInput, context: OperationContext): Promise<PolicyAddReport> {
  const written = writeRule(input);
  readRule(written); // a mistake is told before anything is looked at
  const { run } = await findRun(input.run);
  if (!existsSync(join(run.folder, 'ledger.sqlite'))) throw notBegun(run);
  let outcome = await addAlone(run, written, context);
  const byWorker = outcome === undefined;
  if (outcome === undefined) {
    context.onNote('the worker of this run is asked to do it');
    outcome = await addByWorker(run, written, context);
  }
  return { run: run.name, folder: run.folder, byWorker, ...outcome };
}

/** undefined: a worker holds the run. */
async function addAlone(run: RunSpec, written: object, context: OperationContext): Promise<RuleOutcome | undefined> {
  const held = tryHold(run.folder, context);
  if (held === undefined) return undefined;
  const at = plantCrash(context.host);
  try {
    const ledger = openSqliteLedger(join(run.folder, 'ledger.sqlite'), { clock: context.host.clock });
    const log = openRunLog(join(run.folder, 'logs', 'aerie.log'));
    try {
      ledger.releaseLeases();
      at('before-rule');
      const rule = readRule(written);
      const { outcome, events } = applyRule(rule, ledger, () => at('after-rule'));
      const tell = (all: readonly Event[]) => {
        for (const event of all) {
          log.write(event);
          context.onEvent(event);
        }
      };
      tell(events);
      const emit = (happening: Happening) => tell(ledger.emit([happening]));
      return { ...outcome, unkept: await keepRule(rule, { run, ledger, context, emit }) };
    } finally {
      log.close();
      ledger.close();
    }
  } finally {
    held.release();
  }
}

async function addByWorker(run: RunSpec, written: object, context: OperationContext): Promise<RuleOutcome> {
  const { host, drain } = context;
  const answer = await askWorker(written, {
    ...{ folder: run.folder, number: `${Math.round(host.clock.now())}-${host.pid}` },
    ...{ clock: host.clock, signal: drain, limitMs: WORKER_LIMIT_MS },
    isWorkerGone: () => {
      const held = tryHold(run.folder, context);
      held?.release();
      return held !== undefined;
    },
  });
  if (answer?.ok === true) return answer.outcome;
  if (answer !== undefined) throw refused(answer.message, answer.remedy);
  const outcome = await addAlone(run, written, context);
  if (outcome !== undefined) return outcome;
  throw refused('Another worker has taken the run meanwhile.', 'Give the same command again.');
}

function tryHold(folder: string, { host }: OperationContext): HeldRun | undefined {
  try {
    return holdRun(folder, { pid: host.pid, host: hostname(), startedAt: host.clock.now() });
  } catch (thrown) {
    if (thrown instanceof AerieError && thrown.code === 'ledger.held-elsewhere') return undefined;
    throw thrown;
  }
}

function notBegun(run: RunSpec): AerieError {
  return new AerieError('run.absent', `Run ${run.name} has not begun: there is no ledger in ${run.folder}.`, {
    remedy: `Write the rule under policy: in ${run.file}; it then counts from the first launch on. Nothing was changed.`,
  });
}

function refused(message: string, remedy: string): AerieError {
  return new AerieError('control.refused', `The worker of this run did not add the rule: ${message}`, { remedy });
}
