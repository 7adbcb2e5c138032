/**
 * What /proc/PID/cgroup tells: the container of a process, and the folders whose memory limit holds for it. Pure.
 * Lines are `HIERARCHY:CONTROLLERS:PATH`; version 2 is the line `0::PATH`.
 */

/** `docker-0123456789ab`, `lxc/101`, `libpod-…`, `containerd-…`; '' = none that is known. */
export function containerOf(cgroup: string): string {
  const paths = cgroup.split('\n').map((line) => line.split(':').slice(2).join(':'));
  for (const path of paths) {
    const lxc = /(?:^|\/)lxc(?:\.payload)?[./]([^/.]+)/.exec(path);
    if (lxc?.[1] !== undefined) return `lxc/${lxc[1]}`;
    const named = /(?:^|\/)(docker|libpod|cri-containerd|crio)-([0-9a-f]{12})[0-9a-f]*\.scope/.exec(path);
    if (named !== null) return `${named[1]}-${named[2]}`;
    const docker = /\/docker\/([0-9a-f]{12})[0-9a-f]*/.exec(path);
    if (docker !== null) return `docker-${docker[1]}`;
    const pod = /\/kubepods[^/]*\/.*\/([0-9a-f]{12})[0-9a-f]{52}$/.exec(path);
    if (pod !== null) return `kubernetes-${pod[1]}`;
    const slurm = /\/slurm[^/]*(?:\/[^/]+)*?\/job_(\d+)/.exec(path);
    if (slurm !== null) return `slurm/${slurm[1]}`;
  }
  return '';
}

export interface MemoryFolder {
  readonly version: 1 | 2;
  readonly folder: string;
}

/** The cgroup and those above it, each with a limit that holds too. A container sees its own path, or the host's: both are tried. */
export function memoryFolders(cgroup: string): MemoryFolder[] {
  return cgroup.split('\n').flatMap((line): MemoryFolder[] => {
    const [, controllers, ...rest] = line.split(':');
    const path = rest.join(':');
    if (controllers === '' && path !== '') return above(path).map((at) => ({ version: 2, folder: `/sys/fs/cgroup${at}` }));
    if (controllers?.split(',').includes('memory'))
      return above(path).map((at) => ({ version: 1, folder: `/sys/fs/cgroup/memory${at}` }));
    return [];
  });
}

/** `/a/b` → `/a/b`, `/a`, ``. */
function above(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..');
  return Array.from({ length: parts.length + 1 }, (_, nth) =>
    parts
      .slice(0, parts.length - nth)
      .map((part) => `/${part}`)
      .join(''),
  );
}

/** What a limit leaves. Pages of files that can be dropped at once are counted as used by the kernel, and are not. */
export function memoryLeft(limit: string, usage: string, stat: string): number | undefined {
  const [most, used] = [limit, usage].map((text) => (/^\d+$/.test(text.trim()) ? Number(text) : undefined));
  if (most === undefined || used === undefined) return undefined; // `max`: no limit
  const droppable = Number(/^(?:total_)?inactive_file (\d+)$/m.exec(stat)?.[1] ?? 0);
  return Math.max(0, most - Math.max(0, used - droppable));
}
