/**
 * `aerie server stop`: ends the launches of a run file, whoever watched them, and waits until the memory of the GPUs is free.
 * Where nothing was launched yet the disk stays as it was: no run folder is made for it.
 */
import { join } from 'node:path';
import { AerieError, type ErrorCode } from '../../base/errors.ts';
import type { Event, Happening } from '../../base/events.ts';
import { openRunLog } from '../../observe/run-log.ts';
import { openBook, type ServerBook } from '../../server/launch/launch-book.ts';
import { NOTHING_KEPT } from '../../server/recovery/kept-changes.ts';
import type { RunSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { findRun } from '../find-run.ts';
import { policyInForce } from '../policy-in-force.ts';
import { type HeldFolder, openRunFolder } from '../run-folder.ts';
import { openIdleLauncher } from '../servers/idle-launcher.ts';
import { machineOf, PATIENCE_MS } from '../servers/machine-of.ts';
import { sayWhenNotReached } from '../servers/say-when-not-reached.ts';
import { workerOf } from '../worker-of.ts';
import { chooseServers, type ServerInput } from './choose-servers.ts';

export interface ServerStopReport {
  readonly run: string;
  readonly servers: readonly StoppedServer[];
  /** Every launch is gone and the GPUs are at their baseline. */
  readonly isClean: boolean;
}

export interface StoppedServer {
  readonly name: string;
  /** Launches so far; 0: there was nothing to end, and nothing was looked at. */
  readonly launches: number;
  /** 0 = none was running. */
  readonly pid: number;
  /** What was done and seen, one sentence each. */
  readonly says: readonly string[];
  readonly isGone: boolean;
  readonly isMemoryFree: boolean;
  /** Cards whose memory was looked at; 0: nothing is known of it. */
  readonly gpus: number;
}

export async function runServerStop(input: ServerInput, context: OperationContext): Promise<ServerStopReport> {
  const { run } = await findRun(input.run);
  const servers = chooseServers(run, input);
  const books = await Promise.all(servers.map(({ name }) => openBook(run.serverFolder, name, NOTHING_KEPT).read()));
  // A worker that holds the run may be about to launch: it is named, as for any other stop.
  if (books.every(isUnused) && (await workerOf(run.folder)) === undefined)
    return { run: run.name, servers: servers.map(({ name }) => ({ name, ...NOTHING_LAUNCHED })), isClean: true };
  const opened = await openWherePossible(run, context);
  const isUnrecorded = opened instanceof AerieError;
  const { emit, close } = isUnrecorded ? { emit: sayOnly(context), close: () => undefined } : recorder(run, opened, context);
  const policy = () => (isUnrecorded ? run.policy : policyInForce(run, opened.ledger));
  try {
    const stopped: StoppedServer[] = [];
    for (const server of servers) {
      const launcher = await openIdleLauncher({ run, server, context, emit, policy, isUnrecorded });
      const unhear = sayWhenNotReached(machineOf(server, context), { patienceMs: PATIENCE_MS, soFar: '' }, context);
      const { says, isNoted, ...outcome } = await launcher.stop().finally(unhear);
      const unrecorded = isUnrecorded && outcome.pid > 0 ? [sayUnrecorded(opened, isNoted)] : [];
      const launches = books[stopped.length]?.launches ?? 0;
      stopped.push({ name: server.name, launches, ...outcome, says: [...says, ...unrecorded] });
    }
    return { run: run.name, servers: stopped, isClean: stopped.every(({ isGone, isMemoryFree }) => isGone && isMemoryFree) };
  } finally {
    close();
  }
}

const NOTHING_LAUNCHED = { launches: 0, pid: 0, says: [], isGone: true, isMemoryFree: true, gpus: 0 } as const;

/** A launch is in the book before it is started: where none is, none was. */
function isUnused({ launches, current, leftover }: ServerBook): boolean {
  return launches === 0 && current === undefined && leftover === undefined;
}

function sayUnrecorded({ message }: AerieError, isNoted: boolean): string {
  const unsaid = `${message} So the history of the run has no line of this stop.`;
  const next = isNoted ? 'knows of it all the same' : 'takes it for a death, which counts as a try';
  return `${unsaid} The next start ${next}.`;
}

/** An error: the disk takes nothing more, and nobody works there. A server that costs money is ended all the same; its book needs only to be read. */
async function openWherePossible(run: RunSpec, { host }: OperationContext): Promise<HeldFolder | AerieError> {
  try {
    return await openRunFolder(run, host);
  } catch (thrown) {
    const isOfDisk = thrown instanceof AerieError && OF_DISK.has(thrown.code);
    if (!isOfDisk || (await workerOf(run.folder)) !== undefined) throw thrown;
    return thrown;
  }
}

const OF_DISK: ReadonlySet<string> = new Set<ErrorCode>(['disk.full', 'disk.read-only', 'disk.failed']);

function recorder(run: RunSpec, { ledger, close }: HeldFolder, { onEvent }: OperationContext) {
  const log = openRunLog(join(run.folder, 'logs', 'aerie.log'));
  return {
    emit(happening: Happening) {
      for (const event of ledger.emit([happening]) satisfies readonly Event[]) {
        log.write(event);
        onEvent(event);
      }
    },
    close() {
      log.close();
      close();
    },
  };
}

function sayOnly({ onEvent, host }: OperationContext) {
  return (happening: Happening) => onEvent({ ...happening, n: 0, at: host.clock.now() });
}
