/**
 * The closed union of things that happen in a run. Domain code emits these and nothing else; the ledger, the log,
 * the terminal and `--json` all tell the same story from them. `n` is given inside the ledger transaction.
 * Attempts are rows of the ledger, not events.
 */
export type Fact = string | number | boolean;
export type Facts = Readonly<Record<string, Fact>>;

export const EVENT_KINDS = [
  'run.started',
  'run.resumed',
  'run.finished',
  'run.stopped',
  'run.draining',
  'run.amended',
  'partition.enrolled',
  'partition.budget-reached',
  'partition.redoing',
  'partition.requeued',
  'partition.withdrawn',
  'machine.away',
  'machine.back',
  'server.starting',
  'server.waiting',
  'server.ready',
  'server.log-found',
  'server.log-missing',
  'server.verified',
  'server.lost',
  'server.left-out',
  'server.stopped',
  'server.left-running',
  'launch.preflight',
  'launch.starting',
  'launch.started',
  'launch.adopted',
  'launch.phase',
  'launch.verified',
  'launch.recorded',
  'launch.ended',
  'launch.changed',
  'launch.compared',
  'launch.given-up',
  'launch.memory-held',
  'launch.memory-free',
  'verdict.given',
  'gate.changed',
  'policy.checked',
  'policy.added',
  'policy.broken',
  'shard.sealed',
  'shard.repaired',
  'prompt.set-aside',
  'prompt.kept',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** An event before the ledger has numbered it. */
export interface Happening {
  readonly kind: EventKind;
  /** Which run, partition, server or prompt it is about. */
  readonly subject: string;
  readonly facts: Facts;
}

export interface Event extends Happening {
  readonly n: number;
  /** Epoch milliseconds. */
  readonly at: number;
}

export type Emit = (happening: Happening) => void;
