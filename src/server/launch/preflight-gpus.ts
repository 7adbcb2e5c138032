/** GPUs of a launch: enough of them, and nobody on them. Pure. */
import { findFlag, SGLANG_LINE, VLLM_LINE } from '../../engine/launching.ts';
import type { GpuReading, Holder, HoldersLook } from '../../machine/machine.ts';
import type { PreflightCheck, PreflightInput } from './preflight-input.ts';

/** A card that nobody uses holds up to this for its driver; above its own baseline half a GiB is someone's. */
const IDLE_MIB = 600;
const ABOVE_BASELINE_MIB = 512;

/** GPUs of this machine that the launch takes, 0 where no plan says it. */
export function gpusNeeded({ plan, engine, flags }: Pick<PreflightInput, 'plan' | 'engine' | 'flags'>): number {
  if (plan === undefined) return 0;
  const { tp, pp, dp, isDpAttention } = plan.launch;
  const nodes = Number(findFlag(flags, ['nnodes'], engine === 'vllm' ? VLLM_LINE : SGLANG_LINE) ?? 1);
  const all = tp * pp * (isDpAttention ? 1 : dp);
  return Math.ceil(all / (Number.isInteger(nodes) && nodes > 0 ? nodes : 1));
}

export function checkGpus(input: PreflightInput): PreflightCheck {
  const { gpus } = input;
  if (gpus.kind !== 'read') return notSeen('gpus', gpus);
  const [needed, visible] = [gpusNeeded(input), visibleOf(input)];
  const there = `${visible.length} ${visible.length === 1 ? 'GPU is' : 'GPUs are'} visible to the launch`;
  if (needed === 0) return { name: 'gpus', verdict: 'unknown', says: `${there}; how many it takes is not known`, remedy: '' };
  if (needed > visible.length) {
    const remedy = 'Lower tensor, pipeline or data parallelism in flags:, or make more GPUs visible (CUDA_VISIBLE_DEVICES).';
    return { name: 'gpus', verdict: 'refused', says: `the flags take ${needed} GPUs and ${there}`, remedy };
  }
  const totals = taken(input).map(({ totalMiB }) => totalMiB);
  const isMixed = Math.max(...totals) > Math.min(...totals) * 1.02;
  if (!isMixed) return { name: 'gpus', verdict: 'ok', says: `the flags take ${needed} GPUs and ${there}`, remedy: '' };
  const says = `the ${needed} GPUs have from ${Math.min(...totals)} to ${Math.max(...totals)} MiB; the smallest sizes them all`;
  return { name: 'gpus', verdict: 'warning', says, remedy: 'Choose equal ones with CUDA_VISIBLE_DEVICES in env:.' };
}

export function checkGpuMemory(input: PreflightInput): PreflightCheck {
  const { gpus, baselineMiB, holders } = input;
  if (gpus.kind !== 'read') return notSeen('gpu memory', gpus);
  const held = taken(input).filter(({ index, usedMiB }) => usedMiB > limitOf(baselineMiB?.[index]));
  if (held.length === 0) {
    const most = Math.max(0, ...taken(input).map(({ usedMiB }) => usedMiB));
    return { name: 'gpu memory', verdict: 'ok', says: `nobody holds GPU memory (at most ${most} MiB are used)`, remedy: '' };
  }
  const [first, ...others] = held.map(
    (gpu) => `GPU ${gpu.index} has ${gpu.usedMiB} MiB in use, held by ${whoHolds(gpu, holders)}`,
  );
  // A server on eight GPUs holds each of them: one is told whole.
  const more = `${others.length} more GPUs are held: ${held
    .slice(1)
    .map((gpu) => `${gpu.index} by ${pidsOn(gpu, holders)}`)
    .join(', ')}`;
  const says = others.length < 2 ? [first, ...others].join('; ') : `${first}; ${more}`;
  const unseen = (holders?.unknown ?? []).map((one) => ` Not seen: ${one}`).join('');
  const remedy = `Stop who holds it, or let Aerie end it, once, with --kill-holder PID, or choose other GPUs with CUDA_VISIBLE_DEVICES in env:; one busy GPU shrinks the pool of all.${unseen}`;
  return { name: 'gpu memory', verdict: 'refused', says, remedy };
}

function limitOf(baseline: number | undefined): number {
  return baseline === undefined ? IDLE_MIB : baseline + ABOVE_BASELINE_MIB;
}

function holdersOf({ uuid }: GpuReading, holders: HoldersLook | undefined): readonly Holder[] {
  return (holders?.holders ?? []).filter(({ gpuUuid }) => gpuUuid === uuid || gpuUuid === '');
}

function pidsOn(gpu: GpuReading, holders: HoldersLook | undefined): string {
  const here = holdersOf(gpu, holders);
  if (here.length === 0) return 'nobody who can be seen';
  return `${here.length === 1 ? 'pid' : 'pids'} ${here.map(({ pid }) => pid).join(' ')}`;
}

function whoHolds(gpu: GpuReading, holders: HoldersLook | undefined): string {
  const here = holdersOf(gpu, holders);
  if (here.length === 0)
    return 'nobody who can be seen from here (another container or pid namespace, or a process that is ending)';
  const words = here.slice(0, 4).map(({ pid, name, user, usedMiB, container, identity, by, outside }) => {
    const size = usedMiB === undefined ? '' : `, ${usedMiB} MiB`;
    const on = outside === undefined ? '' : ` on ${outside.machine}`;
    const place = container !== '' ? `, in ${container}` : identity === undefined ? ', a pid of the host' : '';
    return `pid ${pid}${on} (${name}${user === '' ? '' : ` of ${user}`}${size}${place}${by === 'zombie' ? ', a zombie' : ''})`;
  });
  return `${words.join(' and ')}${here.length > 4 ? ` and ${here.length - 4} more` : ''}`;
}

function visibleOf({ gpus, visibleGpus }: PreflightInput): readonly GpuReading[] {
  if (gpus.kind !== 'read') return [];
  if (visibleGpus === undefined) return gpus.gpus;
  return visibleGpus.flatMap((index) => gpus.gpus.find((gpu) => gpu.index === index) ?? []);
}

/** SGLang counts from `--base-gpu-id`. Where nobody says how many, all that are visible. */
function taken(input: PreflightInput): readonly GpuReading[] {
  const visible = visibleOf(input);
  const first = Number(findFlag(input.flags, ['base-gpu-id'], SGLANG_LINE) ?? 0);
  const needed = gpusNeeded(input) || visible.length;
  return visible.slice(first, first + needed);
}

function notSeen(name: 'gpus' | 'gpu memory', gpus: Exclude<PreflightInput['gpus'], { kind: 'read' }>): PreflightCheck {
  const says =
    gpus.kind === 'absent' ? 'there is no nvidia-smi here, so no GPU was looked at' : `nvidia-smi failed: ${gpus.because}`;
  const remedy = gpus.kind === 'absent' ? '' : 'Run nvidia-smi and see what it says; the engine needs the driver as well.';
  return { name, verdict: gpus.kind === 'absent' ? 'unknown' : 'warning', says, remedy };
}
