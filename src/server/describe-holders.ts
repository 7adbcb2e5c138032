/** Who holds memory of the GPUs, as sentences: how much, on which card, and what to type. Pure. */
import type { Holder } from '../machine/machine.ts';
import type { HeldMemory, OccupiedGpu } from './gpu-memory.ts';

/** `outer`: name of the machine around that was asked; '' = none. */
export function describeHolders({ gpus, holders, ours, unknown }: HeldMemory, outer = ''): string[] {
  const isTold = gpus.length === 0 || holders.some(({ usedMiB }) => usedMiB !== undefined);
  return [
    ...gpus.map(describeGpu),
    ...groupByProcess(holders).map((group) => describeHolder(group, gpus, ours)),
    ...(isTold ? [] : [describeNobody(outer)]),
    ...unknown.map((what) => `Not seen: ${what}`),
  ];
}

const LIST_APPS = 'nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv';

function describeNobody(outer: string): string {
  if (outer !== '') return `Nobody here or on ${outer} is said to hold it. To see it there as root:  ${LIST_APPS}`;
  return (
    'Nobody who can be seen from here is said to hold it. A process of another container or namespace may: ask the operator of ' +
    `the host to look, with  ${LIST_APPS}`
  );
}

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
  const whose = ours.includes(first.pid) ? ' It belongs to the launch that was stopped.' : '';
  if (first.outside !== undefined) return `${describeOutside(first, first.outside, holds)}${whose}${sayEnd(first)}`;
  if (first.identity === undefined)
    return (
      `A process that is not in this pid namespace, pid ${first.pid} on the host, ${holds}. It cannot be ended from here: ask the ` +
      `operator of the host to look at it (cat /proc/${first.pid}/cgroup there names its container) and to end it.`
    );
  const who = `${first.identity.command} (pid ${first.pid}, user ${first.user === '' ? 'unknown' : first.user})${where}`;
  if (first.by === 'zombie') return `${who} has ended and ${holds} still. ${describeReaping(first)}`;
  return `${who} ${holds}.${whose} To end it:  kill ${first.pid}  or let Aerie, once, with  --kill-holder ${first.pid}`;
}

function describeOutside({ pid, user, container }: Holder, outside: NonNullable<Holder['outside']>, holds: string): string {
  const { machine, identity, innerPid } = outside;
  const place = container === '' ? 'in no container' : `in container ${container}`;
  const inner = innerPid === undefined ? '' : `, here pid ${innerPid}`;
  return `On ${machine}: ${identity.command} (pid ${pid}, user ${user === '' ? 'unknown' : user}, ${place}${inner}) ${holds}.`;
}

function sayEnd({ pid, by, outside }: Holder): string {
  if (by === 'zombie') return ' It has ended, and only its parent can reap it.';
  return ` To let Aerie end it on ${outside?.machine ?? 'its machine'}, once:  --kill-holder ${pid}`;
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
