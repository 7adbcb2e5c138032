/**
 * Host memory for SGLang's hierarchical cache: each rank asks for its own, all at once. A rank looks whether its own part fits and
 * keeps 10 GB for others; that all parts fit nobody looks, and the kernel ends a rank where they do not.
 */
import { isAtLeast } from '../../../engine/version.ts';
import { dieOfLostRank, dieOfRank } from './deaths.ts';
import { countRanks } from './envelope.ts';
import { framesOf } from './frames.ts';
import { eachRank, type Launching } from './launching.ts';
import { SglangLines } from './sglang-lines.ts';

const GIB = 2 ** 30;
/** What each rank leaves to others, in bytes. */
const KEPT_BYTES = 10e9;
/** Pinning: about a minute for 120 GB on each of eight ranks at once. */
const SECONDS_PER_GB = 0.5;

export async function allocateHostCache(launching: Launching): Promise<void> {
  const { stage, plan, scenario } = launching;
  const { launch, shape, prediction } = plan();
  if (launch.hierarchicalCache === undefined) return;
  const { GiBPerRank, GiBTotal, tokens } = prediction.hostCache;
  const frames = [
    ...framesOf('sglang', 'argument-parsing').slice(0, 1),
    'sglang/srt/managers/scheduler.py | init_memory_pool_and_cache | self.tree_cache = HiRadixCache(',
    'sglang/srt/mem_cache/memory_pool_host.py | __init__ | raise ValueError(',
  ];
  const isOlder = !(isAtLeast(launch.version, [0, 5, 15]) ?? true);
  if (isOlder && tokens <= prediction.poolTokens)
    dieOfRank(launching.dying, {
      rank: 0,
      frames,
      error: 'AssertionError: The host memory should be larger than the device memory with the current protocol',
    });
  const gigabytes = (GiBPerRank * GIB) / 1e9;
  const free = (scenario.machine.hostMemoryGiB * GIB - KEPT_BYTES) / GIB;
  if (GiBPerRank > free)
    dieOfRank(launching.dying, {
      rank: 0,
      frames,
      error: `ValueError: Not enough host memory available. Requesting ${GiBPerRank.toFixed(2)} GB but only have ${free.toFixed(2)} GB free. Please reduce the size of the hierarchical cache.`,
    });
  const lines = new SglangLines(launch, shape);
  eachRank(launching, (rank) => stage.say(lines.hostPool(GiBPerRank, tokens), { rank }));
  await stage.wait(Math.max(0.1, gigabytes * SECONDS_PER_GB));
  if (GiBTotal <= scenario.machine.hostMemoryGiB) return;
  const last = Math.min(countRanks(launch), launching.ranks()?.pids.length ?? 1) - 1;
  dieOfLostRank(launching.dying, last, launching.ranks()?.pids[last] ?? 0, 'SIGKILL');
}
