/** Who holds memory of the GPUs, as sentences: how much, on which card, and what to type. Pure. */
import type { Holder } from '../machine/machine.ts';
import type { HeldMemory, OccupiedGpu } from './gpu-memory.ts';

export function describeHolders({ gpus, holders, ours, unknown }: HeldMemory): string[] {
  return [
    ...gpus.map(describeGpu),
    ...groupByProcess(holders).map((group) => describeHolder(group, gpus, ours)),
    ...(gpus.length > 0 && !holders.some(({ usedMiB }) => usedMiB !== undefined) ? [NOBODY_TOLD] : []),
    ...unknown.map((what) => `Not seen: ${what}`),
  ];
}

const NOBODY_TOLD =
  'Nobody who can be seen from here is said to hold it. A process of another container or namespace may: ask the operator of ' +
  'the host to look, with  nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv';

function describeGpu({ index, usedMiB, baselineMiB, overMiB }: OccupiedGpu): string {
  return `GPU ${index} uses ${mib(usedMiB)}, ${mib(overMiB)} above its baseline of ${mib(baselineMiB)}.`;
}

/** All that one process holds; a pid of the host and the same pid here are two. */
function groupByProcess(holders: readonly Holder[]): Holder[][] {
  const groups = new Map<string, Holder[]>();
  for (const holder of holders) {
    const key = `${holder.pid} ${holder.identity === undefined}`;
    groups.set(key, [...(groups.get(key) ?? []), holder]);
  }
  return [...groups.values()];
}

function describeHolder(group: readonly Holder[], gpus: readonly OccupiedGpu[], ours: readonly number[]): string {
  const [first] = group;
  if (first === undefined) return '';
  const holds = group.map((holder) => describeShare(holder, gpus)).join(', ');
  const where = first.container === '' ? '' : ` in container ${first.container}`;
  if (first.identity === undefined)
    return (
      `A process that is not in this pid namespace, pid ${first.pid} on the host, ${holds}. It cannot be ended from here: ask the ` +
      `operator of the host to look at it (cat /proc/${first.pid}/cgroup there names its container) and to end it.`
    );
  const who = `${first.identity.command} (pid ${first.pid}, user ${first.user === '' ? 'unknown' : first.user})${where}`;
  if (first.by === 'zombie') return `${who} has ended and ${holds} still. ${describeReaping(first)}`;
  const whose = ours.includes(first.pid) ? ' It belongs to the launch that was stopped.' : '';
  return `${who} ${holds}.${whose} To end it:  kill ${first.pid}  or let Aerie, once, with  --kill-holder ${first.pid}`;
}

function describeShare({ usedMiB, gpuUuid }: Holder, gpus: readonly OccupiedGpu[]): string {
  const index = gpus.find(({ uuid }) => uuid === gpuUuid)?.index;
  const card = index === undefined ? 'a GPU' : `GPU ${index}`;
  return usedMiB === undefined ? `has ${card} open (how much it holds is not told)` : `holds ${mib(usedMiB)} of ${card}`;
}

/** Only a parent reaps; where it ends, init does. */
function describeReaping({ parent }: Holder): string {
  if (parent === undefined) return 'Its parent, which must reap it, is not known.';
  const { pid, command } = parent;
  return `Only its parent can reap it: pid ${pid}, ${command}. To ask for it:  kill -CHLD ${pid}  and if that does nothing, end the parent:  kill ${pid}`;
}

function mib(amount: number): string {
  return `${Math.round(amount).toLocaleString('en-US')} MiB`;
}
