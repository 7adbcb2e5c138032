/** What a machine has left, in one round trip. Pure. Limits of the cgroup are read for it and for each one above it. */
import { quoteShell } from '../../base/quote-shell.ts';
import { memoryFolders, memoryLeft } from '../cgroup.ts';
import type { Resources } from '../machine.ts';
import { type Frames, frameFunctions } from './frames.ts';

export function renderResources(paths: readonly string[], nonce: string): string {
  return [
    frameFunctions(nonce),
    RESOURCES,
    ...paths.map((path, nth) => `aerie_free ${nth} ${quoteShell(path)}`),
    'aerie_free shared /dev/shm',
    'aerie_show "$aerie_nonce/proc/meminfo" "$aerie_nonce/proc/self/cgroup"',
    'aerie_limits',
    'exit 0',
    '',
  ].join('\n');
}

/** A folder that is not there yet is made where the nearest one above it is. */
const RESOURCES = `
aerie_free() {
  aerie_at=$2
  while test ! -e "$aerie_at"; do
    case $aerie_at in ?*/*) aerie_at=\${aerie_at%/*} ;; /*) aerie_at=/ ;; *) aerie_at=. ;; esac
  done
  aerie_say "free $1" "$(stat -f -c '%a %S' -- "$aerie_at" 2>/dev/null)"
}
aerie_limits() {
  set --
  while IFS= read -r aerie_line; do
    aerie_line=\${aerie_line#*:}
    aerie_at=\${aerie_line#*:}
    case ,\${aerie_line%%:*}, in ,,) aerie_top=/sys/fs/cgroup ;; *,memory,*) aerie_top=/sys/fs/cgroup/memory ;; *) continue ;; esac
    while :; do
      aerie_at=\${aerie_at%/}
      for aerie_name in max current limit_in_bytes usage_in_bytes stat; do
        if test -r "$aerie_top$aerie_at/memory.$aerie_name"; then set -- "$@" "$aerie_nonce$aerie_top$aerie_at/memory.$aerie_name"; fi
      done
      test -n "$aerie_at" || break
      aerie_at=\${aerie_at%/*}
    done
  done </proc/self/cgroup
  test $# -eq 0 || aerie_show "$@"
} 2>/dev/null`;

export function parseResources(frames: Frames, paths: readonly string[]): Resources {
  return {
    memoryAvailableBytes: parseMemory(frames),
    sharedMemoryFreeBytes: parseFree(frames.get('free shared')),
    diskFreeBytes: paths.map((_, nth) => parseFree(frames.get(`free ${nth}`))),
  };
}

function parseMemory(frames: Frames): number | undefined {
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec(frames.get('/proc/meminfo') ?? '')?.[1];
  const left = memoryFolders(frames.get('/proc/self/cgroup') ?? '').map(({ version, folder }) => {
    const names = version === 2 ? ['max', 'current'] : ['limit_in_bytes', 'usage_in_bytes'];
    const [limit = '', usage = '', stat = ''] = [...names, 'stat'].map((name) => frames.get(`${folder}/memory.${name}`) ?? '');
    return memoryLeft(limit, usage, stat);
  });
  const known = [available === undefined ? undefined : Number(available) * 1024, ...left].filter((bytes) => bytes !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Free blocks for those who are not root, and the size of one. */
function parseFree(text: string | undefined): number | undefined {
  const [, blocks, size] = /^(\d+) (\d+)$/.exec(text?.trim() ?? '') ?? [];
  return blocks === undefined || size === undefined ? undefined : Number(blocks) * Number(size);
}
