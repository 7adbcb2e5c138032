/** Where a shard lies in the run folder. Nothing else lives below `records/`. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Five digits: at 256 MiB each, 100,000 shards are 25 TiB of one partition. Longer numbers still work; they sort last. */
export function shardPath(runFolder: string, partition: string, number: number): string {
  return join(runFolder, 'records', partition, `${String(number).padStart(5, '0')}.jsonl`);
}

export function shardExists(path: string): boolean {
  return existsSync(path);
}
