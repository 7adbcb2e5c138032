/**
 * The verified launches of one server that a person may want to compare: what each really was, and how it worked. Kept in the book, so that
 * the next launch is told apart from the one before it by what was seen and not by what is remembered.
 */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { LoadSample } from '../../diagnosis/log-facts.ts';
import type { LaunchFlags } from '../../engine/launching.ts';
import type { Machine } from '../../machine/machine.ts';
import { launchKey } from '../recovery/changes.ts';
import type { ChangeExplained, LaunchSeen, LoadSeen } from './changed-launch.ts';
import { explainChange } from './explain-change.ts';
import { LogFollower } from './follow-log.ts';
import type { BookShelf, LaunchRecord, SeenLaunch, ServerBook } from './launch-book.ts';
import type { VerifiedLaunch } from './verified-launch.ts';

/** As many as are compared: this one, and the last one with other flags. */
const KEPT = 2;

export interface SeenWhere {
  readonly shelf: BookShelf;
  readonly machine: Machine;
  readonly engine: PlannedEngine;
}

/** Enters a verified launch; returns the last one before it that had other flags, with its load. */
export async function rememberSeen(
  { shelf, machine, engine }: SeenWhere,
  record: LaunchRecord,
  verified: VerifiedLaunch,
): Promise<SeenLaunch | undefined> {
  const before = findBefore(await shelf.read(), record, engine);
  const loaded = before === undefined ? undefined : await withLoad(before, record, { machine, engine });
  const seen = [...(loaded === undefined ? [] : [loaded]), seenOf(record, verified)].slice(-KEPT);
  await shelf.change((book) => ({ ...book, seen }));
  return loaded;
}

/** The last verified launch with other flags or variables than this one. */
export function findBefore({ seen = [] }: ServerBook, record: LaunchRecord, engine: PlannedEngine): SeenLaunch | undefined {
  const key = launchKey(engine, record.flags, record.env);
  return seen.findLast(({ n, flags, env }) => n !== record.n && launchKey(engine, flags, env) !== key);
}

export function seenOf(record: LaunchRecord, { kvType, poolTokens, freeAfterGraphsGiB }: VerifiedLaunch): SeenLaunch {
  const { n, flags, env } = record;
  const { type, bits } = kvType;
  return {
    ...{ n, flags, env, kvType: bits === undefined ? { type } : { type, bits }, poolTokens },
    ...(freeAfterGraphsGiB === undefined ? {} : { freeAfterGraphsGiB }),
  };
}

/** undefined: nothing differs that is a lever. */
export function compareSeen(
  before: SeenLaunch,
  after: SeenLaunch,
  predictPool: (flags: LaunchFlags) => number | undefined,
): ChangeExplained | undefined {
  const explained = explainChange({ before: asQuestion(before), after: asQuestion(after), predictPool });
  return explained.levers.length === 0 ? undefined : explained;
}

function asQuestion({ n, flags, env, kvType, poolTokens, freeAfterGraphsGiB, load }: SeenLaunch): LaunchSeen {
  const { type, bits } = kvType;
  return { name: `launch ${n}`, flags, env, verified: { kvType: { type, bits }, poolTokens, freeAfterGraphsGiB }, load };
}

/** A start and an end are no load: the later half of the readings, of the server at work. undefined = there is none. */
export function loadOf(samples: readonly LoadSample[]): LoadSeen | undefined {
  const atWork = samples.filter(({ running, generated }) => running > 0 && generated > 0);
  const late = atWork.slice(Math.floor(atWork.length / 2));
  if (late.length === 0) return undefined;
  const mean = (read: (sample: LoadSample) => number) => late.reduce((sum, sample) => sum + read(sample), 0) / late.length;
  const round = (value: number) => Math.round(value * 10) / 10;
  return {
    running: round(mean(({ running }) => running)),
    queued: round(mean(({ queued }) => queued)),
    inFlight: Math.max(...late.map(({ running, queued }) => running + queued)),
    tokensPerSecond: round(mean(({ generated }) => generated)),
  };
}

/** From its log, which was moved aside when the next launch began. */
async function withLoad(
  before: SeenLaunch,
  { n, logPath }: LaunchRecord,
  { machine, engine }: Pick<SeenWhere, 'machine' | 'engine'>,
): Promise<SeenLaunch> {
  if (before.load !== undefined || before.n === n) return before;
  const log = new LogFollower(machine, `${logPath}.${before.n}`, engine);
  while (!(await log.readOn()));
  const load = loadOf(log.account().facts.samples);
  return load === undefined ? before : { ...before, load };
}
