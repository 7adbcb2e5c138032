/**
 * The run folder: made once, held by one worker, compared with the run file at each start.
 * What changes the data is refused with the difference shown; new partitions and higher budgets are taken over.
 */
import { join } from 'node:path';
import { AerieError, diskCodeOf, systemCodeOf } from '../base/errors.ts';
import type { Event, Facts, Happening } from '../base/events.ts';
import { formatCount } from '../base/units.ts';
import { compareSource } from '../dataset/compare-source.ts';
import type { SourceDifference } from '../dataset/source-differs.ts';
import type { Host } from '../host/host.ts';
import { readText } from '../host/read-text.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { openSqliteLedger } from '../ledger/sqlite/open-ledger.ts';
import { holdRun } from '../ledger/sqlite/worker-lock.ts';
import { replaceFile } from '../shard/durable-file.ts';
import { ensureFolder } from '../shard/durable-folder.ts';
import { type Difference, identityDifferences, identityOf } from '../spec/identity.ts';
import type { RunSpec } from '../spec/run.ts';
import { refuseNetworkDisk } from './refuse-network-disk.ts';
import { nameHolder } from './worker-of.ts';

export interface HeldFolder {
  readonly ledger: Ledger;
  readonly isNew: boolean;
  /** What `--amend` has recorded, already durable. */
  readonly events: readonly Event[];
  /** The worker was asked to end: whoever looks is told. */
  sayDraining(): void;
  close(): void;
}

/**
 * Makes or opens the run folder for work. Throws before anything is changed when the run file differs in its data, unless
 * `isAmending`: then the differences are recorded as `run.amended`, and the run goes on in the new way.
 */
export async function openRunFolder(run: RunSpec, host: Host, isAmending = false, isDetached = false): Promise<HeldFolder> {
  await refuseNetworkDisk(run.folder);
  try {
    // Synced up to the run file's own folder: a ledger is no use in a folder whose name a power cut takes away.
    for (const folder of ['prompts', 'records', 'rejected', 'logs']) await ensureFolder(join(run.folder, folder));
  } catch (thrown) {
    throw cannotWrite(run.folder, thrown);
  }
  const name = await nameHolder(run.folder, host, isDetached);
  const held = holdRun(run.folder, name);
  let ledger: Ledger | undefined;
  try {
    ledger = openSqliteLedger(join(run.folder, 'ledger.sqlite'), { clock: host.clock });
    const isNew = Object.keys(ledger.identity()).length === 0;
    const changes = isNew ? NO_CHANGES : await findChanges(run, ledger, isAmending);
    const events = takeOver(run, ledger, changes);
    await writeRunFiles(run);
    const opened = ledger;
    return {
      ledger: opened,
      isNew,
      events,
      sayDraining: () => held.rename({ ...name, isDraining: true }),
      close() {
        opened.close();
        held.release();
      },
    };
  } catch (thrown) {
    ledger?.close();
    held.release();
    throw systemCodeOf(thrown) === '' || thrown instanceof AerieError ? thrown : cannotWrite(run.folder, thrown);
  }
}

/** Before the first answer there is no data that a change could spoil: a first start that failed pins nothing but the rows it read. */
function hasAnswers(ledger: Ledger): boolean {
  return ledger.partitions().some(({ answers, aside, dropped }) => answers + aside + dropped > 0);
}

interface Changes {
  readonly differences: readonly Difference[];
  /** Partitions whose rows are others now. */
  readonly reopened: readonly string[];
}
const NO_CHANGES: Changes = { differences: [], reopened: [] };

/** What a begun run has otherwise; thrown unless it is to be amended. */
async function findChanges(run: RunSpec, ledger: Ledger, isAmending: boolean): Promise<Changes> {
  const changed = identityDifferences(ledger.identity(), { ...ledger.identity(), ...identityOf(run) });
  const isBegun = hasAnswers(ledger);
  const differences = changed.filter((difference) => !isFree(difference, ledger, isBegun));
  if (differences.length > 0 && !isAmending) throw differs(run, differences);
  const rowsDiffer = (name: string) =>
    changed.some(({ what }) => ['from', 'columns', 'turns'].some((key) => what === `partitions.${name}.${key}`));
  const reopened = ledger.partitions().flatMap(({ name }) => (rowsDiffer(name) ? [name] : []));
  for (const partition of ledger.partitions()) {
    const spec = run.partitions.find(({ name }) => name === partition.name);
    if (spec === undefined || partition.sourceRows === 0 || reopened.includes(spec.name)) continue;
    const difference = await compareSource(partition.pin, spec.from);
    // A source that was read to its end is not needed again: its prompts lie in the run folder.
    if (difference === undefined || (difference.what === 'missing' && partition.enrolment === 'complete')) continue;
    // A source that is not there cannot be read anew either: that is no change to record.
    const isAllowed = difference.what !== 'missing' && (isAmending || partition.enrolled === 0);
    if (!isAllowed) throw sourceChanged(spec.name, difference, isBegun ? '' : run.folder);
    if (partition.enrolled > 0) differences.push(describeSource(spec.name, difference));
    reopened.push(spec.name);
  }
  return { differences, reopened };
}

/**
 * What may still be another: before the first answer all but the partitions' own, and of a partition that has given no
 * prompt (all its rows were refused, or none was read) how its rows are read and asked: whoever mends that goes on.
 */
function isFree({ what }: Difference, ledger: Ledger, isBegun: boolean): boolean {
  const [, name, key] = /^partitions\.(.*)\.(from|columns|turns|truncated|sampling)$/.exec(what) ?? [];
  if (key !== undefined) return ledger.partitions().some((partition) => partition.name === name && partition.enrolled === 0);
  return !isBegun && !what.startsWith('partitions.');
}

function describeSource(name: string, difference: SourceDifference): Difference {
  const before = `${formatCount(difference.pinnedBytes)} bytes`;
  return { what: `partitions.${name}.source`, before, now: difference.what === 'changed' ? 'other content' : difference.what };
}

/** The facts of `run.amended`: `was.KEY` and `now.KEY` of everything that changed. */
export function amended(run: RunSpec, differences: readonly Difference[]): Happening {
  const facts = differences.flatMap(({ what, before, now }) => [
    [`was.${what}`, before],
    [`now.${what}`, now],
  ]);
  return { kind: 'run.amended', subject: run.name, facts: Object.fromEntries(facts) as Facts };
}

/** Sources first: an amendment that is cut short here is refused again, and recorded when it is asked for again. */
function takeOver(run: RunSpec, ledger: Ledger, { differences, reopened }: Changes): readonly Event[] {
  for (const name of reopened) ledger.reopenSource(name);
  const known = Object.entries(ledger.identity()).filter(([key]) => hasAnswers(ledger) || !key.startsWith('launch.'));
  const happenings = differences.length > 0 ? [amended(run, differences)] : [];
  const settings = run.partitions.map(({ name, budget, limit }) => ({ name, budget, limit }));
  ledger.declarePartitions(settings, differences.length > 0);
  return ledger.setIdentity({ ...Object.fromEntries(known), ...identityOf(run) }, happenings);
}

/** The live server's own identity is part of the run's from the first launch on. */
export function launchFacts(identity: Facts): Readonly<Record<string, string>> {
  const entries = Object.entries(identity).filter(([key]) => key.startsWith('launch.'));
  return Object.fromEntries(entries.map(([key, value]) => [key.slice('launch.'.length), String(value)]));
}

async function writeRunFiles(run: RunSpec): Promise<void> {
  await keepText(join(run.folder, 'run.yaml'), run.text);
  const { text: _, ...resolved } = run;
  await keepText(join(run.folder, 'run.resolved.json'), `${JSON.stringify(resolved, undefined, 2)}\n`);
}

async function keepText(path: string, text: string): Promise<void> {
  if ((await readText(path, 2 * text.length + 2 ** 20).catch(() => undefined)) !== text) await replaceFile(path, text);
}

function cannotWrite(folder: string, thrown: unknown): AerieError {
  const code = systemCodeOf(thrown);
  if (diskCodeOf(code) === 'disk.full') {
    return new AerieError(
      'disk.full',
      `The disk that holds ${folder} is full.`,
      { remedy: 'Free some space, then run the same command again. Nothing was lost.' },
      thrown,
    );
  }
  return new AerieError(
    'disk.read-only',
    `${folder} cannot be written: ${code || String(thrown)}.`,
    {
      remedy: 'Give the folder write permission, or copy the run file to a place where runs/ can be made. Nothing was started.',
    },
    thrown,
  );
}

function differs(run: RunSpec, differences: readonly Difference[]): AerieError {
  return new AerieError('run-file.differs', `Run ${run.name} has begun, and ${run.file} would change its data.`, {
    because: 'All records of a run are made in one way, so that a trainer can rely on them.',
    evidence: differences.map(({ what, before, now }) => `${what}: was ${before}, is now ${now}`),
    remedy:
      'Put these back as they were, or give the new way its own name under run:. Nothing was changed; what is committed is safe.\n' +
      'To go on in the new way all the same, with the change recorded: the same command with --amend',
  });
}

/** `unanswered`: the run folder, where removing it costs nothing. */
function sourceChanged(partition: string, difference: SourceDifference, unanswered: string): AerieError {
  const size = (bytes: number) => `${formatCount(bytes)} bytes`;
  const was = `it had ${size(difference.pinnedBytes)} when it was read`;
  const now =
    difference.what === 'missing'
      ? 'is not there'
      : difference.what === 'appeared'
        ? `has a file of ${size(difference.bytes)} that it did not have`
        : difference.what === 'changed'
          ? `has other content in its first ${size(difference.hashedBytes)}`
          : `has ${difference.what} to ${size(difference.bytes)}`;
  return new AerieError('source.changed', `The source of partition ${partition} ${now}; ${was}.`, {
    evidence: [difference.path],
    remedy:
      unanswered === ''
        ? 'Put the file back as it was, or add the new rows as a partition of their own. Nothing was changed; what is committed is safe.'
        : `No prompt of this run has been answered yet, so begin again with the new file:  rm -r ${unanswered}`,
  });
}
