/** What happened to the servers that Aerie launches: every launch, verdict, change and rule, from the ledger's events; and what lives now. */

import { isOutOfReach } from '../base/errors.ts';
import type { Event, EventKind } from '../base/events.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Machine, ProcessIdentity } from '../machine/machine.ts';
import { type LaunchRecord, openBook } from '../server/launch/launch-book.ts';
import { NOTHING_KEPT } from '../server/recovery/kept-changes.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { isLaunched } from './server/choose-servers.ts';
import { machineOf } from './servers/machine-of.ts';

export interface LivingLaunch {
  readonly server: string;
  readonly launch: number;
  readonly pid: number;
  readonly port: number;
  readonly log: string;
  /** Epoch ms; 0 = it is not ready yet. */
  readonly readyAt: number;
  /** '' = this machine. */
  readonly machine: string;
  /** Why it could not be looked at: its machine is out of reach, and it may well live; '' = it was seen to live. */
  readonly unseen: string;
}

/** Phases and checks are for whoever watches; `launch.starting` has the flags, so that `launch.started` says nothing new later. */
const OF_LAUNCHES: ReadonlySet<EventKind> = new Set<EventKind>([
  ...(['launch.starting', 'launch.adopted', 'launch.verified', 'launch.ended', 'launch.changed', 'launch.given-up'] as const),
  ...(['launch.memory-held', 'launch.memory-free', 'verdict.given'] as const),
  ...(['policy.added', 'policy.broken', 'partition.withdrawn'] as const),
]);
const OF_LAUNCHED_SERVERS: ReadonlySet<EventKind> = new Set<EventKind>(['server.lost', 'server.ready', 'server.left-running']);

/** Oldest first. Of servers that are attached or embedded only what concerns the rules. */
export function launchHistory(ledger: Pick<Ledger, 'events'>): Event[] {
  const found: Event[] = [];
  const launched = new Set<string>();
  for (let after = 0; ; ) {
    const page = ledger.events(after);
    const last = page.at(-1);
    if (last === undefined) return found;
    for (const event of page) {
      if (event.kind === 'launch.starting' || event.kind === 'launch.adopted') launched.add(event.subject);
      if (OF_LAUNCHES.has(event.kind) || (OF_LAUNCHED_SERVERS.has(event.kind) && launched.has(event.subject))) found.push(event);
    }
    after = last.n;
  }
}

/** A person waits; a machine that answers at all does so in a second or two. */
const STATUS_PATIENCE_MS = 5_000;

/** Those whose process is still the one that was started, and those of machines that are out of reach. Reads only. */
export async function livingLaunches(run: RunSpec, context: OperationContext): Promise<LivingLaunch[]> {
  const living: LivingLaunch[] = [];
  for (const server of run.servers.filter(isLaunched)) {
    const { current } = await openBook(run.serverFolder, server.name, NOTHING_KEPT).read();
    if (current?.identity === undefined) continue;
    const machine = machineOf(server, context, STATUS_PATIENCE_MS);
    const unseen = await lookAt(machine, current.identity, current);
    if (unseen === undefined) continue;
    const { n, identity, port, logPath, readyAt = 0 } = current;
    const where = machine.isHere ? '' : machine.name;
    living.push({ server: server.name, launch: n, pid: identity.pid, port, log: logPath, readyAt, machine: where, unseen });
  }
  return living;
}

/** undefined: it does not run. '' = it does. */
async function lookAt(machine: Machine, identity: ProcessIdentity, launch: LaunchRecord): Promise<string | undefined> {
  try {
    const { main } = await machine.look(identity, launch);
    return main === 'running' ? '' : undefined;
  } catch (thrown) {
    if (!isOutOfReach(thrown)) throw thrown;
    return thrown.message;
  }
}
