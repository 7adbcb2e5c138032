/**
 * One line for people while a server starts: where it is, how far, how fast, and until when, as far as that can be told. Pure.
 * Promises: a rate or a time is told only where two looks or the engine's own bar give it; a phase that prints nothing says so, so
 * that a silent minute is no alarm.
 */
import { formatBytes, formatDuration } from '../../base/units.ts';
import type { Account } from '../account.ts';
import { hasWorked } from '../account-view.ts';
import { hasCaptured, limitOf } from '../judge-silence.ts';
import type { Phase } from '../verdict.ts';
import type { Look } from './look.ts';
import { lastMoved, movements, START_SIGNS } from './movement.ts';

/** Rates are of the last minute: longer ones hide that a disk has become slow. */
const RATE_MS = 60_000;
/** Less is noise, not reading. */
const LEAST_RATE = 2 ** 20;
/** Silence is told from here on; shorter ones are between two lines. */
const QUIET_MS = 30_000;

const NAMES: Partial<Readonly<Record<Phase | '', string>>> = {
  '': 'starting',
  'image-fetch': 'fetching the image of its container',
  'argument-parsing': 'reading its flags',
  'model-import': 'importing the engine',
  'model-resolution': 'finding the model',
  'device-init': 'opening the GPUs',
  'distributed-init': 'connecting the ranks',
  'weight-loading': 'loading weights',
  'kv-pool-allocation': 'allocating the KV pool',
  'kv-cache-sized': 'sizing the KV pool',
  profiling: 'profiling memory',
  'jit-compile': 'compiling kernels',
  'torch-compile': 'compiling the model',
  'cuda-graph-capture': 'capturing CUDA graphs',
  'engine-initialized': 'opening the port',
  'http-bind': 'opening the port',
  warmup: 'warming up',
};

/** What the next thing is that prints nothing, with the time seen for it (eight GPUs, a model of 500 GB). */
const SILENT: Partial<Readonly<Record<Phase | '', string>>> = {
  'weight-loading': 'repacking takes 70–80 s and prints nothing',
  'kv-pool-allocation': 'pinning host memory for a hierarchical cache takes about a second per GB and prints nothing',
};

/** `looks`: oldest first, as `judgeLook` takes them. `gpuTotalMiB`: memory of all GPUs of the launch together. */
export function describeProgress(account: Account, looks: readonly Look[], gpuTotalMiB?: number): string {
  if (account.ready !== undefined || hasWorked(account)) return 'ready';
  const parts = [phaseOf(account), ...pace(account), ...outside(looks, gpuTotalMiB), ...quiet(account, looks)];
  return parts.join(' · ');
}

function phaseOf(account: Account): string {
  const { phase, progress, phaseEnded, compiling } = account;
  const isFull = progress !== undefined && progress.done >= progress.of;
  if (phase === 'weight-loading' && (isFull || phaseEnded)) {
    const done = progress === undefined ? '' : ` (${progress.done} of ${progress.of})`;
    return phaseEnded ? `weights are loaded${done}` : `weights are read${done}, ${SILENT[phase]}`;
  }
  if (phase === 'image-fetch' && phaseEnded) return 'starting: its image is there';
  if (hasCaptured(account)) return 'CUDA graphs are captured';
  const name = NAMES[phase] ?? phase;
  const kernels = compiling === undefined ? '' : ', kernels are compiled the first time (10–20 min)';
  const silent = phase === 'kv-pool-allocation' ? `; ${SILENT[phase]}` : '';
  if (progress === undefined || progress.of <= 0) return `${name}${kernels}${silent}`;
  const percent = Math.floor((100 * progress.done) / progress.of);
  return `${name} ${progress.done} of ${progress.of} (${percent}%)${kernels}`;
}

/** By the engine's own bar. */
function pace({ progress, secondsEach, compiling }: Account): string[] {
  if (progress === undefined || secondsEach === undefined || secondsEach <= 0 || progress.done >= progress.of) return [];
  const rate = secondsEach >= 1 ? `${round(secondsEach)} s each` : `${round(1 / secondsEach)} a second`;
  // What was measured before a kernel's compilation says nothing of its end.
  if (progress.done === 0 || compiling !== undefined) return [rate];
  return [rate, `about ${formatDuration((progress.of - progress.done) * secondsEach * 1000)} left`];
}

/** By the processes: how fast it reads, what stands on the GPUs, who compiles. */
function outside(looks: readonly Look[], gpuTotalMiB: number | undefined): string[] {
  const signs = looks.at(-1)?.process;
  if (signs === undefined) return [];
  const rate = rateOf(looks);
  const total = gpuTotalMiB === undefined ? '' : ` of ${gibibytes(gpuTotalMiB)}`;
  return [
    ...(rate === undefined || rate < LEAST_RATE ? [] : [`reads ${formatBytes(Math.round(rate))}/s`]),
    ...(signs.gpuUsedMiB === undefined ? [] : [`GPU ${gibibytes(signs.gpuUsedMiB)}${total} GiB`]),
    ...(signs.compilers === 0 ? [] : [`${signs.compilers} compilers at work`]),
  ];
}

function rateOf(looks: readonly Look[]): number | undefined {
  const read = looks.filter(({ process }) => process?.readBytes !== undefined);
  const last = read.at(-1);
  const first = read.find(({ atMs }) => atMs >= (last?.atMs ?? 0) - RATE_MS);
  if (first === undefined || last === undefined || last.atMs <= first.atMs) return undefined;
  const bytes = (last.process?.readBytes ?? 0) - (first.process?.readBytes ?? 0);
  return bytes < 0 ? undefined : (1000 * bytes) / (last.atMs - first.atMs);
}

function quiet(account: Account, looks: readonly Look[]): string[] {
  const [first, last] = [looks[0], looks.at(-1)];
  if (first === undefined || last === undefined) return [];
  const stillMs = last.atMs - (lastMoved(movements(looks, START_SIGNS))?.movedAt ?? first.atMs);
  if (stillMs < QUIET_MS) return [];
  return [`nothing has moved for ${formatDuration(stillMs)} of ${formatDuration(limitOf(account))}`];
}

function gibibytes(mebibytes: number): string {
  return String(Math.round(mebibytes / 1024));
}

function round(value: number): string {
  return value >= 10 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}
