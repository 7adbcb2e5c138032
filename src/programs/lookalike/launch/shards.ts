/** Reading the checkpoint's files, as both engines show it: one bar for each file, and the GPUs fill while it goes. */
import { renderBar } from './envelope.ts';
import { dieOfMemory, type Launching } from './launching.ts';

/** A local NVMe array, cold; repacking 72 GiB on each GPU took 75 s. */
const DISK_GIB_PER_SECOND = 5;
const REPACK_SECONDS_PER_GIB = 75 / 72.33;
const SKELETON_SECONDS = 2;
/** One of Kimi-K2.5's 64 files. */
const SHARD_GIB = 9.05;

export interface LoadTimes {
  readonly seconds: number;
  readonly skeleton: number;
  readonly read: number;
  readonly repack: number;
  readonly shards: number;
}

/** Enters the phase: skeleton, files and repacking in proportion, whatever the scenario makes of the whole. */
export function beginLoad({ stage, plan }: Launching): LoadTimes {
  const { launch, prediction } = plan();
  const weights = prediction.weightsGiBPerGpu;
  const wholeGiB = weights * launch.tp * launch.pp;
  const read = Math.max(2, wholeGiB / DISK_GIB_PER_SECOND);
  const repack = Math.max(1, weights * REPACK_SECONDS_PER_GIB);
  const natural = SKELETON_SECONDS + read + repack;
  const seconds = stage.enter('weight-loading', natural);
  const part = (one: number) => (one / natural) * seconds;
  const shards = Math.max(1, Math.ceil(wholeGiB / SHARD_GIB));
  return { seconds, skeleton: part(SKELETON_SECONDS), read: part(read), repack: part(repack), shards };
}

/** `freeGiB` of the fullest GPU before the weights; `hold` is told what is loaded so far; `lead` stands before each bar. */
export async function readShards(
  launching: Launching,
  { read, shards }: LoadTimes,
  { freeGiB, lead = '', hold }: { readonly freeGiB: number; readonly lead?: string; hold(loadedGiB: number): void },
): Promise<void> {
  const { stage, plan } = launching;
  const weights = plan().prediction.weightsGiBPerGpu;
  // The bar's own format ends with a line feed, and tqdm begins each one with a carriage return.
  const bar = (done: number) =>
    stage.write(`${lead}\r${renderBar('Loading safetensors checkpoint shards', done, shards, (done / shards) * read, false)}\n`);
  bar(0);
  for (let done = 1; done <= shards; done += 1) {
    await stage.wait(read / shards);
    const loaded = (weights * done) / shards;
    if (loaded > freeGiB) dieOfMemory(launching, weights / shards, freeGiB - (weights * (done - 1)) / shards);
    hold(loaded);
    bar(done);
  }
  stage.write('\n');
}
