/** The open shard of every partition of a run: appended to together, rolled back together, sealed when full. */
import type { Happening } from '../base/events.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { shardExists, shardPath } from '../shard/shard-path.ts';
import { openShardWriter, type RecordPlace, type SealedShard, type ShardPoint, type ShardWriter } from '../shard/shard-writer.ts';

export interface ShardLine {
  readonly partition: string;
  /** With its newline. */
  readonly line: Buffer;
}

export interface ShardSetOptions {
  /** The run folder. */
  readonly folder: string;
  readonly ledger: Ledger;
  readonly sealBytes?: number;
  /** Called at each point of an append or a seal; a test's ends the process there. */
  readonly at?: (point: ShardPoint) => void;
}

interface OpenShard {
  readonly writer: ShardWriter;
  /** Bytes that the ledger has. */
  committed: number;
}

export class ShardSet {
  readonly #options: ShardSetOptions;
  readonly #open = new Map<string, OpenShard>();

  constructor(options: ShardSetOptions) {
    this.#options = options;
  }

  /** Cuts every open shard to its last committed byte, and tells what was cut. */
  async repair(): Promise<Happening[]> {
    const happenings: Happening[] = [];
    for (const { name: partition } of this.#options.ledger.partitions()) {
      // A shard is in the ledger from its first commit on; a worker killed before that one leaves bytes all the same.
      const { path, committedBytes } = this.#placeOf(partition);
      if (committedBytes === 0 && !shardExists(path)) continue;
      const { writer } = await this.#shardOf(partition);
      if (writer.cutBytes > 0)
        happenings.push({
          kind: 'shard.repaired',
          subject: partition,
          facts: { shard: writer.number, cutBytes: writer.cutBytes },
        });
    }
    return happenings;
  }

  /** Appends and syncs; on failure every shard is back at what the ledger has. */
  async append(lines: readonly ShardLine[]): Promise<(RecordPlace & { readonly shard: number })[]> {
    const byPartition = new Map<string, [number, Buffer][]>();
    for (const [at, { partition, line }] of lines.entries()) {
      const entries = byPartition.get(partition);
      if (entries === undefined) byPartition.set(partition, [[at, line]]);
      else entries.push([at, line]);
    }
    const places: (RecordPlace & { readonly shard: number })[] = [];
    try {
      for (const [partition, entries] of byPartition) {
        const { writer } = await this.#shardOf(partition);
        const shard = writer.number;
        const appended = await writer.append(entries.map(([, line]) => line));
        for (const [nth, place] of appended.entries()) {
          const at = entries[nth]?.[0];
          if (at !== undefined) places[at] = { ...place, shard };
        }
      }
    } catch (thrown) {
      await this.rollback();
      throw thrown;
    }
    return places;
  }

  /** The ledger has everything that was appended. */
  committed(): void {
    for (const shard of this.#open.values()) shard.committed = shard.writer.durableBytes;
  }

  /** The ledger refused, or a shard did: what was appended since the last commit is cut off again. */
  async rollback(): Promise<void> {
    for (const { writer, committed } of this.#open.values()) {
      // A disk that cannot even cut is left alone: the next start cuts.
      if (writer.durableBytes !== committed) await writer.rollback(committed).catch(() => undefined);
    }
  }

  /** Seals the shards that are full; `onSealed` tells the ledger before anything more is appended. */
  async sealFull(onSealed: (partition: string, sealed: SealedShard) => void): Promise<void> {
    for (const [partition, shard] of this.#open) {
      if (!shard.writer.isFull) continue;
      onSealed(partition, await shard.writer.seal());
      shard.committed = 0;
    }
  }

  async close(): Promise<void> {
    for (const { writer } of this.#open.values()) await writer.close();
    this.#open.clear();
  }

  async #shardOf(partition: string): Promise<OpenShard> {
    const already = this.#open.get(partition);
    if (already !== undefined) return already;
    const { folder, sealBytes, at } = this.#options;
    const { number, committedBytes } = this.#placeOf(partition);
    const limits = { ...(sealBytes === undefined ? {} : { sealBytes }), ...(at === undefined ? {} : { at }) };
    const writer = await openShardWriter({ folder, partition, number, committedBytes, ...limits });
    const shard = { writer, committed: committedBytes };
    this.#open.set(partition, shard);
    return shard;
  }

  /** The shard that the next append goes to: the open one, or the one after the last sealed one. */
  #placeOf(partition: string): { readonly path: string; readonly number: number; readonly committedBytes: number } {
    const { ledger, folder } = this.#options;
    const rows = ledger.shards().filter((row) => row.partition === partition);
    const open = rows.find(({ sealed }) => !sealed);
    const number = open?.number ?? rows.reduce((next, row) => Math.max(next, row.number + 1), 0);
    return { path: shardPath(folder, partition, number), number, committedBytes: open?.committedBytes ?? 0 };
  }
}
