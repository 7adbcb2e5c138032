/**
 * Containers of a launch, by its label, as docker and podman tell them: the scripts for a shell, and what they print. Pure.
 * Only containers with the launch's own label are asked about, signalled and removed.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import { parseStat } from '../parse-stat.ts';
import type { Inside } from './inside.ts';

export const LABEL = 'aerie.launch';

/** A bar in a name is not possible; the times of podman hold blanks. */
const FORMAT =
  '{{.Id}}|{{.State.Status}}|{{.State.Pid}}|{{.State.OOMKilled}}|{{.State.ExitCode}}|{{.State.FinishedAt}}|{{.Name}}';

/**
 * A line for each container of the launch; behind one that runs, `stat` and /proc/PID/stat of its first process, where that process
 * is seen to be in it: docker may be another machine's, and its pids then somebody else's here.
 */
export function listContainers(control: string, marker: string): string {
  return [
    `ids=$(${idsOf(control, marker)}) || exit`,
    'test -n "$ids" || exit 0',
    `all=$(${control} inspect --format ${quoteShell(FORMAT)} $ids) || exit`,
    `printf '%s\\n' "$all" | while IFS='|' read -r id state pid rest; do`,
    `printf '%s|%s|%s|%s\\n' "$id" "$state" "$pid" "$rest"`,
    'test -n "$pid" && test "$pid" -gt 0 && grep -q "$id" "/proc/$pid/cgroup" 2>/dev/null &&',
    `read -r stat 2>/dev/null <"/proc/$pid/stat" && printf 'stat %s\\n' "$stat"`,
    'done',
    'exit 0',
  ].join('\n');
}

function idsOf(control: string, marker: string): string {
  return `${control} ps -aq --no-trunc --filter ${quoteShell(`label=${LABEL}=${marker}`)}`;
}

/** Oldest last, as docker lists them; what is no such line is passed over. */
export function parseContainers(text: string): Inside[] {
  const found: Inside[] = [];
  for (const line of text.split('\n')) {
    const last = found.at(-1);
    if (line.startsWith('stat ') && last !== undefined) {
      const stat = parseStat(line.slice('stat '.length));
      if (stat?.pid === last.pid) found[found.length - 1] = { ...last, startTicks: stat.startTicks };
      continue;
    }
    const [id = '', status = '', pid = '', isOutOfMemory, exitCode = '', finishedAt = '', name = ''] = line.split('|');
    if (!/^[0-9a-f]{64}$/.test(id)) continue;
    const state = stateOf(status);
    found.push({
      ...{ kind: 'container', id, name: `container ${name.replace(/^\//, '') || id.slice(0, 12)}`, state, node: '' },
      ...{ pid: /^\d+$/.test(pid) ? Number(pid) : 0, startTicks: undefined },
      exitStatus: state === 'ended' && /^-?\d+$/.test(exitCode) ? Number(exitCode) : undefined,
      isOutOfMemory: isOutOfMemory === 'true',
      says: state === 'ended' ? finishedAt : '',
    });
  }
  return found.reverse();
}

/** Words of docker 28 and podman 5. */
function stateOf(status: string): Inside['state'] {
  if (['exited', 'dead', 'stopped'].includes(status)) return 'ended';
  return ['running', 'paused', 'restarting', 'stopping', 'removing'].includes(status) ? 'running' : 'made';
}

export function signalContainer(control: string, id: string, signal: 'SIGTERM' | 'SIGKILL'): string {
  return `${control} kill --signal ${signal.slice(3)} ${quoteShell(id)}`;
}

/** Those that run stay: whoever ends them does it by signal and waits. */
export function removeContainers(control: string, marker: string): string {
  return `ids=$(${idsOf(control, marker)}) || exit\ntest -z "$ids" || ${control} rm $ids`;
}

/**
 * Writes what a container prints into the log from where its client stopped: at the log's last change. The client writes a line after
 * docker has dated it, so nothing comes twice; what was on its way when the client was killed may be missing.
 */
export function followContainer(control: string, id: string, logPath: string): string {
  return `${control} logs --follow --since "$(date -r ${quoteShell(logPath)} +%s.%N)" ${quoteShell(id)}`;
}
