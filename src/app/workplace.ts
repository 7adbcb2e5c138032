/**
 * What one worker has around it: shards cut to what the ledger has, servers, gate, committer, enrolment, prompt files.
 * Opening starts no server; closing stops what was started, and goes on when one of its steps does not work, because
 * everything that matters is on disk by then.
 */
import { join } from 'node:path';
import type { Event, Happening } from '../base/events.ts';
import { Committer } from '../generation/committer.ts';
import { Gate } from '../generation/gate.ts';
import { ShardSet } from '../generation/shard-set.ts';
import { Tally } from '../generation/tally.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type LineReader, openLineReader } from '../shard/line-reader.ts';
import type { PolicyRule, RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { plantCrash } from './crash-points.ts';
import { Enrolments } from './enrolments.ts';
import { keepTokenizer } from './keep-tokenizer.ts';
import type { LaunchBasis } from './servers/launch-basis.ts';
import { type OpenedServers, openServers } from './servers/open-servers.ts';

export interface Job {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly context: OperationContext;
  /** The first refused row stops the run. */
  readonly isStrict: boolean;
  readonly onEvents: (events: readonly Event[]) => void;
  readonly emit: (happening: Happening) => void;
  readonly isAmending: boolean;
  /** What is known of each launch of SGLang or vLLM, by server. */
  readonly bases: ReadonlyMap<string, LaunchBasis>;
  /** Rules in force now: those of the run file, and those that were added. */
  readonly policy: () => readonly PolicyRule[];
  /** This holder of GPU memory may be ended. */
  readonly killHolder?: number;
}

export interface Workplace extends OpenedServers {
  readonly tally: Tally;
  readonly gate: Gate;
  readonly committer: Committer;
  readonly enrolments: Enrolments;
  readonly prompts: (partition: string) => LineReader;
  close(): Promise<void>;
}

export async function openWorkplace(job: Job): Promise<Workplace> {
  const { run, ledger, context, onEvents } = job;
  const { host, abort } = context;
  const at = plantCrash(host);
  const sealBytes = Number(host.env['AERIE_SEAL_BYTES']); // for tests of sealing; people have no use for it
  const shards = new ShardSet({ folder: run.folder, ledger, at, ...(sealBytes > 0 ? { sealBytes } : {}) });
  const tokenizers: Promise<void>[] = [];
  const stopping = new AbortController();
  const { fleet, launchers } = await openFleet(job, shards, tokenizers, stopping.signal);
  const tally = new Tally();
  for (const partition of ledger.partitions()) tally.begin(partition);
  const readers = new Map<string, LineReader>();
  const enrolments = new Enrolments({
    ...{ run, ledger, onEvents, isStrict: job.isStrict },
    ...{ env: host.env, onNote: context.onNote },
  });
  return {
    fleet,
    launchers,
    tally,
    gate: new Gate(run.inFlight),
    committer: new Committer({ ledger, shards, clock: host.clock, at, onEvents }),
    enrolments,
    prompts(partition) {
      const reader = readers.get(partition) ?? openPrompts(job, partition);
      readers.set(partition, reader);
      return reader;
    },
    async close() {
      // A tokenizer is read from the server, so it comes before the server's end, unless there is no time.
      if (!abort.aborted) await Promise.all(tokenizers);
      stopping.abort();
      const closing = [enrolments.stop(), fleet.stop(), shards.close(), ...[...readers.values()].map((reader) => reader.close())];
      await Promise.allSettled(closing);
    },
  };
}

function openPrompts({ run, ledger }: Job, partition: string): LineReader {
  const committed = () => ledger.partitions().find(({ name }) => name === partition)?.promptsBytes ?? 0;
  return openLineReader(join(run.folder, 'prompts', `${partition}.jsonl`), committed);
}

/** The first thing: shards at what the ledger has, so that a worker that cannot go on has at least mended the folder. */
async function openFleet(
  { run, ledger, context, emit, isAmending, bases, policy, killHolder }: Job,
  shards: ShardSet,
  tokenizers: Promise<void>[],
  stopping: AbortSignal,
): Promise<OpenedServers> {
  try {
    for (const happening of await shards.repair()) emit(happening);
    return await openServers({
      ...{ run, ledger, context, emit, isAmending, bases, policy, stopping },
      ...(killHolder === undefined ? {} : { killHolder }),
      // Nothing depends on the tokenizer: without one, `check` says that it has no decoder.
      onReady: (endpoint) => tokenizers.push(keepTokenizer(endpoint, run.folder).catch(() => undefined)),
    });
  } catch (thrown) {
    await shards.close();
    throw thrown;
  }
}
