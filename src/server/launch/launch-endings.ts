/**
 * How the launches of a book end: the one that died while nobody watched is judged, its end and the reason are on disk before anything
 * is stopped, and what is left of it is ended, also where the Aerie that judged it died in between.
 */
import { AerieError } from '../../base/errors.ts';
import type { LiveVerdict } from '../../diagnosis/live/look.ts';
import type { ProcessIdentity } from '../../machine/machine.ts';
import type { LaunchTry } from '../recovery/recovery.ts';
import { machineOfLaunch, refuseUnasked } from './contained-launch.ts';
import { addressOfLaunch } from './launch-address.ts';
import type { LaunchRecord, ServerBook } from './launch-book.ts';
import type { LauncherOptions } from './launcher-options.ts';
import { endLaunch } from './make-room.ts';
import { openEngine } from './open-engine.ts';
import { tellLaunch } from './tell-launch.ts';

export interface LauncherLife {
  readonly options: LauncherOptions;
  /** Answers that this worker had counted when it began to watch the launch. */
  readonly answeredBefore: number;
}

/** Which process a record is, where it is there at all. */
export type Identify = (record: LaunchRecord) => Promise<ProcessIdentity | undefined>;

/** The book without a launch that is not there any more; one that died while nobody watched is judged first. */
export async function findLiving(life: LauncherLife, before: ServerBook, identify: Identify): Promise<ServerBook> {
  const { machine, shelf, name } = life.options;
  const book = await endLeftover(life.options, before);
  const record = book.current;
  if (record === undefined) return book;
  const identity = await identify(record);
  if (identity === undefined) {
    const { current: _, ...without } = book;
    await shelf.write(without);
    return without;
  }
  const known = { ...record, identity };
  const look = await machineOfLaunch(machine, known).look(identity, known);
  if (look.main === 'unknown') refuseUnseen(machine.name, name, known);
  if (look.main === 'running') return { ...book, current: known };
  return await noteOver(life, { ...book, current: known }, { record: known, verdict: await judgeDead(life.options, known) });
}

/** Nobody can tell whether it runs: nothing is written down of it, and nothing is started beside it. */
function refuseUnseen(machine: string, name: string, record: LaunchRecord & { readonly identity: ProcessIdentity }): void {
  refuseUnasked(name, record);
  const { pid } = record.identity;
  throw new AerieError('server.not-launched', `Whether the last launch of ${name} still runs cannot be seen on ${machine}.`, {
    because: `Its pid is ${pid}, and /proc there tells nothing of processes.`,
    remedy: `See whether it runs:  ps -p ${pid}
Where Aerie may see processes, the same command goes on from it. Where it is gone for good, remove servers/${name}.json in the run folder, and it is launched anew. Nothing was started or ended.`,
  });
}

async function judgeDead(options: LauncherOptions, record: LaunchRecord): Promise<LiveVerdict> {
  const address = await addressOfLaunch(options.machine, record);
  const engine = await openEngine(options, record, { address, onOver: async () => undefined });
  const verdict = await engine.watch.look();
  await engine.leave();
  return verdict;
}

/** First on disk that it is over and why, then what is left of it is stopped. */
export async function noteOver(
  { options, answeredBefore }: LauncherLife,
  book: ServerBook,
  { record, verdict }: { readonly record: LaunchRecord; readonly verdict: LiveVerdict },
): Promise<ServerBook> {
  const { shelf, host, asked } = options;
  const { current: _, ...without } = book;
  const { flags, env, readyAt, answered } = record;
  const over: LaunchTry = {
    ...{ flags, env, verdict, readyAt, wasReady: readyAt !== undefined, endedAt: host.clock.now() },
    answered: answered + asked().answered - answeredBefore,
  };
  const after: ServerBook = { ...without, leftover: record, tries: [...book.tries, over], isPending: true };
  await shelf.write(after);
  tellLaunch(options, 'launch.ended', record, { how: `${verdict.state}: ${verdict.title}` });
  return await endLeftover(options, after);
}

/** Ends what is left of a launch that is over, also one that an Aerie which died had judged. */
async function endLeftover(options: LauncherOptions, book: ServerBook): Promise<ServerBook> {
  const { leftover, ...without } = book;
  if (leftover === undefined) return book;
  const report = await endLaunch(options, leftover);
  if (report?.isStopped === false) return book;
  await options.shelf.write(without);
  return without;
}
