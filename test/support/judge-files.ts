/** The judge's look at the shards: whole records without gaps, and committed bytes that never change from one look to the next. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { LedgerRows, RecordRow, ShardRow } from './judge-ledger.ts';

const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
const fileOf = (shard: number): string => `${String(shard).padStart(5, '0')}.jsonl`;

export class JudgedFiles {
  readonly #records: string;
  readonly #complain: (text: string) => void;
  readonly #prefixes = new Map<string, { readonly bytes: number; readonly sha256: string }>();

  constructor(runFolder: string, complain: (text: string) => void) {
    this.#records = join(runFolder, 'records');
    this.#complain = complain;
  }

  judge(rows: LedgerRows): void {
    for (const shard of rows.shards) {
      const name = join(shard.partition, fileOf(shard.number));
      const path = join(this.#records, name);
      const file = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
      if (file.length < shard.committedBytes)
        this.#complain(`${name} has ${file.length} bytes, ${shard.committedBytes} are committed`);
      if (shard.sealed === 1 && (file.length !== shard.committedBytes || sha256(file) !== shard.sha256))
        this.#complain(`${name} is sealed and is not what was sealed`);
      this.#judgeRow(name, shard, rows.records);
      this.#judgePrefix(name, file, shard.committedBytes);
    }
  }

  /** After a clean end no shard has bytes that nobody vouches for, and nothing else lies among them. */
  judgeEnd(partition: string, rows: LedgerRows): void {
    const folder = join(this.#records, partition);
    for (const file of readdirSync(folder)) {
      const shard = rows.shards.find((row) => row.partition === partition && fileOf(row.number) === file);
      this.sameSize(join(folder, file), shard?.committedBytes ?? 0);
    }
  }

  sameSize(path: string, bytes: unknown): void {
    const size = existsSync(path) ? statSync(path).size : 0;
    if (size !== bytes) this.#complain(`${path} has ${size} bytes, the ledger vouches for ${bytes}`);
  }

  /** undefined: the file ends before. */
  bytesOf({ partition, shard, offset, bytes }: RecordRow): Buffer | undefined {
    const path = join(this.#records, partition, fileOf(shard));
    const line = existsSync(path) ? readFileSync(path).subarray(offset, offset + bytes) : Buffer.alloc(0);
    return line.length === bytes ? line : undefined;
  }

  uncommittedBytes(rows: LedgerRows | undefined): number {
    const committed = (rows?.shards ?? []).reduce((sum, { committedBytes }) => sum + committedBytes, 0);
    return filesBelow(this.#records).reduce((sum, path) => sum + statSync(path).size, -committed);
  }

  #judgeRow(name: string, shard: ShardRow, all: readonly RecordRow[]): void {
    const records = all.filter((row) => row.partition === shard.partition && row.shard === shard.number);
    let end = 0;
    for (const { offset, bytes } of records.sort((a, b) => a.offset - b.offset)) {
      if (offset !== end) this.#complain(`${name}: a record begins at ${offset}, the one before ends at ${end}`);
      end = offset + bytes;
    }
    if (end !== shard.committedBytes || records.length !== shard.records)
      this.#complain(`${name}: the row of the shard does not agree with its records`);
  }

  #judgePrefix(name: string, file: Buffer, committedBytes: number): void {
    const before = this.#prefixes.get(name);
    if (before !== undefined && (committedBytes < before.bytes || sha256(file.subarray(0, before.bytes)) !== before.sha256))
      this.#complain(`${name}: bytes that were committed have changed`);
    this.#prefixes.set(name, { bytes: committedBytes, sha256: sha256(file.subarray(0, committedBytes)) });
  }
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
