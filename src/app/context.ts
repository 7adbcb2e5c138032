/** What every operation gets besides its input. An operation never prints, exits or reads flags. */
import type { Event } from '../base/events.ts';
import type { Host } from '../host/host.ts';
import type { Machine } from '../machine/machine.ts';
import type { ServerSpec } from '../spec/run.ts';
import type { Progress } from './progress.ts';

export interface OperationContext {
  readonly host: Host;
  /** Told every event after it is durable. */
  readonly onEvent: (event: Event) => void;
  /** A sentence about something that takes a while and is not an event of a run (a download, a wait). */
  readonly onNote: (text: string) => void;
  /** Called once by operations that have progress to show. */
  readonly onProgress: (snapshot: () => Progress) => void;
  /** Ask to stop: finish what is in flight. */
  readonly drain: AbortSignal;
  /** Give up what is in flight. */
  readonly abort: AbortSignal;
  /** The worker is in no terminal: `aerie run --detach`. */
  readonly isDetached?: boolean;
  /** Servers are launched elsewhere than on this machine, and what they measure says nothing about a real one: a rehearsal. */
  readonly lab?: Lab;
}

export interface Lab {
  machineOf(server: ServerSpec): Machine;
}
