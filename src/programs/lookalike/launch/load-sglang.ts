/**
 * The middle of SGLang's start, where memory goes: weights, pool, graphs. Each step holds what it took of the GPUs, and dies where
 * the arithmetic says that it does not fit.
 */
import { requestTableGiB } from '../../../capacity/estimate-memory.ts';
import { isAtLeast } from '../../../engine/version.ts';
import { dieOfRank } from './deaths.ts';
import { renderBar } from './envelope.ts';
import { framesOf } from './frames.ts';
import { dieOfMemory, eachRank, type Launching } from './launching.ts';
import type { LifePlan } from './plan-life.ts';
import { gb, SglangLines } from './sglang-lines.ts';
import { beginLoad, readShards } from './shards.ts';

/** 31 s for 52 sizes in a public log. */
const SECONDS_PER_GRAPH = 0.6;

export async function loadWeights(launching: Launching): Promise<void> {
  const { stage, plan } = launching;
  const times = beginLoad(launching);
  const free = launching.measure();
  const { launch, shape, prediction } = plan();
  const { freeBeforeLoadGiB: before, weightsGiBPerGpu: weights } = prediction;
  eachRank(launching, (rank) => stage.say(`Load weight begin. avail mem=${gb(free[rank] ?? before)}`, { rank }));
  const hold = (loadedGiB: number) => launching.ranks()?.hold(heldBy(plan(), before - loadedGiB));
  hold(0);
  await stage.wait(times.skeleton);
  await readShards(launching, times, { freeGiB: before, hold });
  await stage.wait(times.repack);
  if (launch.kvType.asked.startsWith('fp8')) stage.say(UNSCALED, { rank: 0 });
  const lines = new SglangLines(launch, shape);
  eachRank(launching, (rank) => stage.say(lines.weightsEnd(times.seconds, (free[rank] ?? before) - weights, weights), { rank }));
}

const UNSCALED =
  'Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. This may lead to less accurate results!';

/** GiB of the card that are gone where so much is free, others' not counted. */
function heldBy({ gpu, prediction }: LifePlan, freeGiB: number): number {
  // What others hold is missing before the load, too.
  return Math.max(0, prediction.freeBeforeLoadGiB - freeGiB) + contextGiB(gpu.memoryMiB);
}

/** Driver, CUDA context and process groups: 95.59 of the driver against 94.04 free before the load. */
function contextGiB(memoryMiB: number): number {
  return (memoryMiB / 1024) * (1.55 / 95.59);
}

export async function makePool(launching: Launching): Promise<void> {
  const { stage, plan, scenario } = launching;
  const { launch, shape, prediction } = plan();
  const seconds = stage.enter('kv-pool-allocation', 0.5);
  const {
    poolTokens,
    poolGiB,
    statePoolGiB,
    freeBeforeLoadGiB: before,
    weightsGiBPerGpu: weights,
    requestTableGiB: table,
  } = prediction;
  const after = before - weights;
  if (poolTokens <= launch.pageTokens) {
    await stage.wait(seconds);
    dieOfRank(launching.dying, { rank: 0, frames: framesOf('sglang', 'kv-pool-allocation'), error: noMemory(plan()) });
  }
  const lines = new SglangLines(launch, shape);
  const isHidden = scenario.hidesKvType !== false;
  if (lines.kvType() !== '' && !isHidden) stage.say(lines.kvType(), { rank: 0 });
  await stage.wait(seconds);
  eachRank(launching, (rank) => stage.say(lines.pool(poolTokens, poolGiB, !isHidden), { rank }));
  if (launch.maxTotalTokensAsked > poolTokens)
    stage.say(
      `max_total_tokens=${launch.maxTotalTokensAsked} is larger than the profiled value ${poolTokens}. Use the profiled value instead.`,
      { rank: 0 },
    );
  const left = after - poolGiB - statePoolGiB - table;
  if (left < 0) tableTooLarge(launching, left + table);
  eachRank(launching, (rank) => stage.say(`Memory pool end. avail mem=${gb(left)}`, { rank }));
  launching.ranks()?.hold(heldBy(plan(), left));
}

function noMemory({ launch, prediction }: LifePlan): string {
  const { memoryFraction } = launch;
  const { freeBeforeLoadGiB: before, weightsGiBPerGpu: weights } = prediction;
  const least = weights / before;
  const from = (...version: [number, number, number]) => isAtLeast(launch.version, version) ?? true;
  if (from(0, 5, 14))
    return `ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=${memoryFraction}. Raise --mem-fraction-static above ${(Math.ceil(least * 1000) / 1000).toFixed(3)} (minimum viable = 1 - available/pre = ${least.toFixed(4)}). If using speculative decoding, draft weights are now counted.`;
  const plain = 'RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.';
  if (from(0, 5, 12)) return `${plain} Current value: mem_fraction_static=${memoryFraction}`;
  return from(0, 5, 8) ? `${plain} Current value: self.server_args.mem_fraction_static=${memoryFraction}` : plain;
}

function tableTooLarge(launching: Launching, freeGiB: number): never {
  const { launch, prediction } = launching.plan();
  const frames = [
    ...framesOf('sglang', 'kv-pool-allocation').slice(0, 2),
    'sglang/srt/mem_cache/memory_pool.py | __init__ | self.req_to_token = torch.zeros(',
  ];
  const tried = requestTableGiB(prediction.maxRunningRequests, launch.contextTokens);
  return dieOfMemory(launching, tried, freeGiB, { rank: 0, frames });
}

export async function captureGraphs(launching: Launching): Promise<void> {
  const { stage, plan } = launching;
  const { launch, shape, prediction, captureGiB, prefillGraphsGiB } = plan();
  const lines = new SglangLines(launch, shape);
  const sizes = [...launch.graphBatches].reverse();
  const atEnd = prediction.freeAfterGraphsGiB;
  if (sizes.length > 0) {
    const seconds = stage.enter('cuda-graph-capture', SECONDS_PER_GRAPH * sizes.length);
    const end = atEnd + prefillGraphsGiB;
    eachRank(launching, (rank) => stage.say(lines.graphsBegin(end + captureGiB), { rank }));
    if (!lines.from(0, 5, 14)) stage.say(`Capture cuda graph bs [${launch.graphBatches.join(', ')}]`, { rank: 0 });
    await capture(launching, { names: sizes.map((size) => `bs=${size}`), seconds, endGiB: end, takesGiB: captureGiB });
    eachRank(launching, (rank) => stage.say(lines.graphsEnd(seconds, captureGiB, end), { rank }));
  }
  if (!launch.hasPrefillGraphs) return;
  const seconds = sizes.length > 0 ? PREFILL_GRAPHS_SECONDS : stage.enter('cuda-graph-capture', PREFILL_GRAPHS_SECONDS);
  const lengths = PREFILL_LENGTHS.filter((length) => length <= launch.prefillChunkTokens);
  eachRank(launching, (rank) => stage.say(lines.prefillGraphsBegin(atEnd + prefillGraphsGiB, lengths), { rank }));
  const names = [...lengths].reverse().map((length) => `num_tokens=${length}`);
  await capture(launching, { names, seconds, endGiB: atEnd, takesGiB: prefillGraphsGiB });
  eachRank(launching, (rank) => stage.say(lines.prefillGraphsEnd(seconds, prefillGraphsGiB, atEnd), { rank }));
}

/** 30 to 300 s. */
const PREFILL_GRAPHS_SECONDS = 40;
/** A few of the lengths that are captured: enough for a bar. */
const PREFILL_LENGTHS = [4, 16, 64, 256, 512, 1024, 2048, 4096, 8192];

interface Capture {
  readonly names: readonly string[];
  readonly seconds: number;
  readonly endGiB: number;
  readonly takesGiB: number;
}

/** One graph after the other, the largest first, until all are there or the memory ends. */
async function capture(launching: Launching, { names, seconds, endGiB, takesGiB }: Capture): Promise<void> {
  const { stage, plan } = launching;
  const count = names.length;
  const each = takesGiB / count;
  const bar = (name: string, done: number, left: number) =>
    `\r${renderBar(`Capturing batches (${name} avail_mem=${gb(Math.max(0, left))})`, done, count, (done / count) * seconds)}`;
  for (const [done, name] of names.entries()) {
    const left = endGiB + takesGiB - each * (done + 1);
    stage.write(bar(name, done, left));
    await stage.wait(seconds / count);
    if (left < 0) {
      stage.write('\n');
      dieOfMemory(launching, Math.max(0.02, each), left + each);
    }
    launching.ranks()?.hold(heldBy(plan(), left));
  }
  stage.write(`${bar(names.at(-1) ?? '', count, endGiB)}\n`);
}
