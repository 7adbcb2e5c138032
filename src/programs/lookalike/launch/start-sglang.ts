/**
 * A start of SGLang, phase after phase, as its log shows it. Durations are those of eight-GPU starts (field notes §d), in
 * proportion to what is loaded; a scenario sets others. It ends ready, or dies where its own arithmetic or a fault says so.
 */
import { dieOfRank } from './deaths.ts';
import { countRanks } from './envelope.ts';
import { framesOf } from './frames.ts';
import { allocateHostCache } from './host-cache.ts';
import { eachRank, type Launching, takeRendezvous } from './launching.ts';
import { captureGraphs, loadWeights, makePool } from './load-sglang.ts';
import { serveSglang } from './serve-sglang.ts';
import { renderServerArgs } from './server-args.ts';
import { SglangLines } from './sglang-lines.ts';
import { stand } from './stage.ts';

export async function startSglang(launching: Launching): Promise<void> {
  await parseArguments(launching);
  await meet(launching);
  await loadWeights(launching);
  await makePool(launching);
  await allocateHostCache(launching);
  await captureGraphs(launching);
  await serveSglang(launching);
}

async function parseArguments(launching: Launching): Promise<void> {
  const { stage, plan, flags } = launching;
  const { launch, shape } = plan();
  await stage.wait(stage.enter('model-import', 5));
  const seconds = stage.enter('argument-parsing', 8);
  stage.say(renderServerArgs({ ...launching, launch }));
  const [refusal] = launch.refusals;
  if (refusal !== undefined) refuseArguments(launching, refusal);
  if (flags.values['attention-backend'] === undefined)
    stage.say('Attention backend not specified. Use triton backend by default.');
  if (!launch.isMemoryFractionGiven && shape.vision !== undefined)
    stage.say(`Multimodal model: Dynamically adjusted --mem-fraction-static to: ${launch.memoryFraction}.`);
  launching.startRanks(titlesOf(launching));
  await stage.wait(seconds);
}

function refuseArguments({ stage }: Launching, refusal: string): never {
  stage.write(
    `Traceback (most recent call last):\n  File "<frozen runpy>", line 198, in _run_module_as_main\nValueError: ${refusal}\n`,
  );
  process.exit(1);
}

function titlesOf(launching: Launching): string[] {
  const { launch } = launching.plan();
  const titles: string[] = [];
  eachRank(launching, (rank) => {
    const group = launch.isDpAttention
      ? `_DP${Math.floor(rank / launch.attentionTp)}`
      : launch.dp > 1
        ? `_DP${Math.floor(rank / (launch.tp * launch.pp))}`
        : '';
    const stage = launch.pp > 1 ? `_PP${Math.floor(rank / launch.tp) % launch.pp}` : '';
    titles.push(`sglang::scheduler${group}${stage}_TP${rank % launch.tp}`);
  });
  return titles;
}

async function meet(launching: Launching): Promise<void> {
  const { stage, plan, scenario, env } = launching;
  const seconds = stage.enter('distributed-init', 3);
  eachRank(launching, (rank) => stage.say('Init torch distributed begin.', { rank }));
  needDevices(launching);
  await takeRendezvous(launching);
  const isMany = plan().launch.tp > 1;
  if (isMany) eachRank(launching, (rank) => stage.say('sglang is using nccl==2.27.5', { rank }));
  const cure = env[scenario.hangsUnlessEnv];
  if (scenario.hangsUnlessEnv !== '' && (cure === undefined || cure === '' || cure === '0')) await stand();
  await stage.wait(seconds);
  if (isMany) gloo(launching);
  const lines = new SglangLines(plan().launch, plan().shape);
  eachRank(launching, (rank) => stage.say(lines.distributedEnd(seconds + rank / 50), { rank }));
  balance(launching, launching.measure());
}

/** More ranks than there are cards. */
function needDevices({ gpus, plan, dying }: Launching): void {
  const ranks = countRanks(plan().launch);
  if (gpus.folder === '' || ranks <= gpus.count) return;
  const error = 'torch.AcceleratorError: CUDA error: invalid device ordinal';
  dieOfRank(dying, { rank: gpus.count, frames: framesOf('sglang', 'distributed-init'), error });
}

/** Printed by all ranks at once, past the logger and into each other. */
function gloo(launching: Launching): void {
  const peers = launching.plan().launch.tp - 1;
  const said: string[] = [];
  eachRank(launching, (rank) =>
    said.push(`[Gloo] Rank ${rank} is connected to ${peers} peer ranks. Expected number of connected peer ranks is : ${peers}`),
  );
  launching.stage.write(`${said.join('')}\n`);
}

/** SGLang compares what its ranks find free before it loads. */
function balance(launching: Launching, freeGiB: readonly number[]): void {
  const least = Math.min(...freeGiB);
  const rank = freeGiB.findIndex((own) => least < own * 0.9);
  if (rank === -1 || launching.env['SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK'] === '0') return;
  const own = freeGiB[rank] ?? 0;
  const error = `RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=${least}, local_gpu_memory=${own}, local_gpu_memory * 0.9=${own * 0.9}`;
  dieOfRank(launching.dying, { rank, frames: framesOf('sglang', 'distributed-init'), error });
}
