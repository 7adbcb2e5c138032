/**
 * The middle of vLLM's start, where memory goes: weights, a dummy step that is compiled and measured, the cache, graphs. Its budget is a
 * share of the whole card and holds the activations, so a prefill at work cannot run out of memory.
 */
import { cudaTotalGiB } from '../../../capacity/estimate-memory.ts';
import { dieOfRank } from './deaths.ts';
import { renderBar } from './envelope.ts';
import { framesOf } from './frames.ts';
import { dieOfMemory, eachRank, type Launching } from './launching.ts';
import type { LifePlan } from './plan-life.ts';
import { beginLoad, readShards } from './shards.ts';
import { compiled, grouped, modelLoaded, tooLong } from './vllm-lines.ts';

const GIB = 2 ** 30;
/** Driver, context and libraries. */
const CONTEXT_GIB = 1.1;
/** 31 s for 67 sizes, in two rounds. */
const SECONDS_PER_GRAPH = 0.45;

export async function loadVllm(launching: Launching): Promise<void> {
  await loadWeights(launching);
  await measureStep(launching);
  await makeCache(launching);
  await captureGraphs(launching);
  const { stage } = launching;
  const seconds = stage.enter('engine-initialized', 1);
  stage.say('init engine (profile, create kv cache, warmup model) took 92.52 seconds', { isCore: true, place: 'core.py:214' });
  await stage.wait(seconds);
}

async function loadWeights(launching: Launching): Promise<void> {
  const { stage, plan, model } = launching;
  const { launch, prediction, gpu } = plan();
  const times = beginLoad(launching);
  eachRank(launching, (rank) => stage.say(`Starting to load model ${model}...`, { rank, place: 'gpu_model_runner.py:2602' }));
  await stage.wait(times.skeleton);
  const hold = (loadedGiB: number) => launching.ranks()?.hold(CONTEXT_GIB + loadedGiB);
  hold(0);
  await readShards(launching, times, { freeGiB: cudaTotalGiB(gpu) - CONTEXT_GIB, lead: stage.lead({ rank: 0 }), hold });
  await stage.wait(times.repack);
  const seconds = times.read + times.repack;
  stage.say(`Loading weights took ${seconds.toFixed(2)} seconds`, { rank: 0, place: 'default_loader.py:267' });
  eachRank(launching, (rank) =>
    stage.say(modelLoaded(launch, prediction.weightsGiBPerGpu, times.seconds), { rank, place: 'gpu_model_runner.py:2653' }),
  );
}

async function measureStep(launching: Launching): Promise<void> {
  const { stage, plan } = launching;
  const { launch, shape } = plan();
  if (launch.graphBatches.length > 0) {
    const seconds = stage.enter('torch-compile', 30);
    const folder = '/root/.cache/vllm/torch_compile_cache/5b1f0c2a77/rank_0_0/backbone';
    stage.say(`Using cache directory: ${folder} for vLLM's torch.compile`, { rank: 0, place: 'backends.py:548' });
    await stage.wait(seconds / 3);
    stage.say(`Dynamo bytecode transform time: ${(seconds / 3).toFixed(2)} s`, { rank: 0, place: 'backends.py:559' });
    await stage.wait((seconds * 2) / 3);
    stage.say(compiled(launch, seconds), { rank: 0, place: 'monitor.py:34' });
  }
  const seconds = stage.enter('profiling', 5);
  if (shape.vision !== undefined)
    stage.say(
      `Encoder cache will be initialized with a budget of ${launch.prefillChunkTokens} tokens, and profiled with 1 image items of the maximum feature size.`,
      { rank: 0, place: 'gpu_model_runner.py:3253' },
    );
  await stage.wait(seconds);
}

async function makeCache(launching: Launching): Promise<void> {
  const { stage, plan, dying } = launching;
  const { launch, prediction } = plan();
  const { poolTokens, poolGiB, bytesPerToken } = prediction;
  const seconds = stage.enter('kv-pool-allocation', 1);
  eachRank(launching, (rank) =>
    stage.say(`Available KV cache memory: ${poolGiB.toFixed(2)} GiB`, { rank, place: 'gpu_worker.py:298' }),
  );
  await stage.wait(seconds);
  const refuse = (error: string) => dieOfRank(dying, { rank: 0, frames: framesOf('vllm', 'kv-cache-sized'), error });
  if (poolGiB <= 0 || poolTokens <= 0)
    refuse(
      'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.',
    );
  const needed = (launch.contextTokens * bytesPerToken) / launch.dcp / GIB;
  if (prediction.verdict === 'refuses-to-start' && needed > poolGiB) refuse(tooLong(launch, needed, poolGiB, poolTokens));
  const sizing = stage.enter('kv-cache-sized', 1);
  const core = { isCore: true, place: 'kv_cache_utils.py:1087' };
  stage.say(`GPU KV cache size: ${grouped(poolTokens)} tokens`, core);
  const most = (poolTokens / launch.contextTokens).toFixed(2);
  stage.say(`Maximum concurrency for ${grouped(launch.contextTokens)} tokens per request: ${most}x`, core);
  launching.ranks()?.hold(heldWith(plan(), prediction.freeAfterGraphsGiB + prediction.graphsGiB));
  await stage.wait(sizing);
}

function heldWith({ gpu }: LifePlan, freeGiB: number): number {
  return Math.max(CONTEXT_GIB, gpu.memoryMiB / 1024 - Math.max(0, freeGiB));
}

async function captureGraphs(launching: Launching): Promise<void> {
  const { stage, plan } = launching;
  const { launch, prediction } = plan();
  const sizes = launch.graphBatches.length;
  if (sizes === 0) return;
  const seconds = stage.enter('cuda-graph-capture', SECONDS_PER_GRAPH * sizes);
  const end = prediction.freeAfterGraphsGiB;
  const begin = end + prediction.graphsGiB;
  const lead = stage.lead({ rank: 0 });
  const bar = (done: number) =>
    `\r${renderBar('Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)', done, sizes, (done / sizes) * seconds)}`;
  stage.write(`${lead}${bar(0)}`);
  for (let done = 1; done <= sizes; done += 1) {
    await stage.wait(seconds / sizes);
    const left = begin - (prediction.graphsGiB * done) / sizes;
    if (left < 0) {
      stage.write('\n');
      dieOfMemory(launching, Math.max(0.02, prediction.graphsGiB / sizes), left + prediction.graphsGiB / sizes);
    }
    stage.write(bar(done));
  }
  stage.write('\n');
  launching.ranks()?.hold(heldWith(plan(), end));
  const words = `Graph capturing finished in ${Math.round(seconds)} secs, took ${prediction.graphsGiB.toFixed(2)} GiB`;
  eachRank(launching, (rank) => stage.say(words, { rank, place: 'gpu_model_runner.py:3480' }));
}
