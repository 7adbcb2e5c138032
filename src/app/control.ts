/**
 * How another command speaks to the worker of a run: through files in its folder, because a worker listens on no port.
 *
 *   control/policy-<n>.json        a rule in the words of the run file, put there whole by rename
 *   control/policy-<n>.done.json   the worker's answer; whoever asked takes both files away
 *
 * A request that nobody waits for any more is carried out all the same: somebody wanted it.
 * On failure: what cannot be read as a rule is answered with its error; `control.unanswered` when the worker says nothing.
 */
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AerieError } from '../base/errors.ts';
import type { Clock } from '../host/host.ts';
import { readText } from '../host/read-text.ts';
import { readRule } from '../spec/read-rule.ts';
import type { PolicyRule } from '../spec/run.ts';
import type { RuleOutcome } from './policy/apply-rule.ts';

export type RuleAnswer =
  | { readonly ok: true; readonly outcome: RuleOutcome }
  | { readonly ok: false; readonly message: string; readonly remedy: string };

/** A person waits for the answer, so a second is soon enough, and it costs one look at a folder. */
const LOOK_EVERY_MS = 1_000;
/** A rule is a few hundred bytes. */
const MOST_BYTES = 64 * 1024;
const REQUEST = /^policy-\d+(-\d+)?\.json$/;

export interface Watching {
  /** The run folder. */
  readonly folder: string;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly signal: AbortSignal;
  /** Carries the rule out; what it throws is the answer too. undefined: it was not done, and whoever asks may do it. */
  readonly onRule: (rule: PolicyRule) => Promise<RuleOutcome | undefined>;
}

/** The worker's side: looks once a second until the signal aborts. One request at a time, the oldest first. */
export async function watchControl({ folder, clock, signal, onRule }: Watching): Promise<void> {
  const control = join(folder, 'control');
  while (!signal.aborted) {
    for (const name of await openRequests(control)) {
      if (signal.aborted) return;
      const answer = await carryOut(join(control, name), onRule);
      if (answer !== undefined) await putWhole(control, doneOf(name), answer);
    }
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

async function carryOut(path: string, onRule: Watching['onRule']): Promise<RuleAnswer | undefined> {
  try {
    const outcome = await onRule(readRule(JSON.parse(await readText(path, MOST_BYTES)) as unknown));
    return outcome === undefined ? undefined : { ok: true, outcome };
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return { ok: false, message, remedy: (thrown instanceof AerieError ? thrown.detail.remedy : undefined) ?? '' };
  }
}

/** Those without an answer. No folder: nobody has ever asked. */
async function openRequests(control: string): Promise<string[]> {
  const names = await readdir(control).catch((): string[] => []);
  const order = (name: string) => Number(/\d+/.exec(name)?.[0]);
  return names
    .filter((name) => REQUEST.test(name) && !names.includes(doneOf(name)))
    .toSorted((a, b) => order(a) - order(b) || (a < b ? -1 : 1));
}

function doneOf(name: string): string {
  return name.replace(/\.json$/, '.done.json');
}

async function putWhole(control: string, name: string, value: object): Promise<void> {
  const fresh = join(control, `${name}.new`);
  await writeFile(fresh, `${JSON.stringify(value)}\n`);
  await rename(fresh, join(control, name));
}

export interface Asking {
  readonly folder: string;
  /** Tells this request from those of others. */
  readonly number: string;
  readonly clock: Pick<Clock, 'sleep' | 'elapsed'>;
  readonly signal: AbortSignal;
  /** Time for an engine that finishes what it has begun, and for another one that loads. */
  readonly limitMs: number;
  /** Asked between two looks: the worker has ended, so that the asker may do it itself. */
  readonly isWorkerGone: () => boolean;
}

/** The asker's side. undefined: the worker has ended without an answer, and the request is taken back. */
export async function askWorker(rule: object, asking: Asking): Promise<RuleAnswer | undefined> {
  const { folder, number, clock, signal, limitMs, isWorkerGone } = asking;
  const control = join(folder, 'control');
  const name = `policy-${number}.json`;
  await mkdir(control, { recursive: true });
  await putWhole(control, name, rule);
  const untilMs = clock.elapsed() + limitMs;
  try {
    while (clock.elapsed() < untilMs && !signal.aborted) {
      const answer = await readAnswer(join(control, doneOf(name)));
      if (answer !== undefined) return answer;
      if (isWorkerGone()) return await readAnswer(join(control, doneOf(name)));
      await clock.sleep(LOOK_EVERY_MS / 4, signal);
    }
    throw unanswered(folder, limitMs, signal.aborted);
  } finally {
    for (const done of [name, doneOf(name)]) await rm(join(control, done), { force: true });
  }
}

/** Put there whole, so what is there can be read. */
async function readAnswer(path: string): Promise<RuleAnswer | undefined> {
  const text = await readText(path, MOST_ANSWER_BYTES).catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as RuleAnswer);
}
/** A line for each launch and each partition of the run. */
const MOST_ANSWER_BYTES = 16 * 1024 * 1024;

function unanswered(folder: string, limitMs: number, wasStopped: boolean): AerieError {
  const how = wasStopped ? 'before you stopped waiting' : `within ${Math.round(limitMs / 1000)} s`;
  return new AerieError('control.unanswered', `The worker of this run has not answered ${how}.`, {
    because: 'The request was taken back. A worker that had begun with it goes on with it.',
    remedy: `See whether the rule is in force: aerie status ${folder}\nThe same command again does no harm.`,
  });
}
