/** What every conversation of a session shares. Nothing in it touches a disk but the committer. */
import type { AerieError } from '../base/errors.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Clock, Random } from '../host/host.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { Provenance } from '../shard/record.ts';
import type { RunSpec } from '../spec/run.ts';
import type { Committer } from './committer.ts';
import type { Gate } from './gate.ts';
import type { RenderedPrompts } from './rendered-prompts.ts';
import type { Tally } from './tally.ts';
import type { Trials } from './trial.ts';

export interface Conversing {
  readonly run: RunSpec;
  /** The first prompt that has no room in the context stops the run. */
  readonly isStrict: boolean;
  readonly fleet: Fleet;
  readonly gate: Gate;
  /** One at a time: prompts that were in flight at several server deaths. */
  readonly suspects: Gate;
  readonly trials: Trials;
  readonly rendered: RenderedPrompts;
  readonly committer: Committer;
  readonly tally: Tally;
  readonly clock: Clock;
  readonly random: Random;
  /** No further attempt: finish what is in flight. */
  readonly drain: AbortSignal;
  /** Give up what is in flight. */
  readonly abort: AbortSignal;
  readonly stop: (error: AerieError) => void;
  readonly provenanceOf: (endpoint: Endpoint) => Provenance;
}
