/** It has crashed, or somebody ended it: a person, the kernel, the limit of its container. Pure. */
import { formatDuration } from '../../base/units.ts';
import type { Account } from '../account.ts';
import { readExit } from '../live/read-exit.ts';
import type { ProbeHypothesis } from './evidence.ts';
import { about, type View, when } from './view.ts';

/** Of a line that is quoted. */
const QUOTED = 160;

export function crashed(view: View): ProbeHypothesis {
  const { account, evidence, isGone, isAlive, isReady, last } = view;
  const { health, process, kernel, groupOomKills = 0, orphans, portHeldBy } = evidence;
  const lines = endsOf(account);
  const reasons = [
    ...when(isGone, () => readExit(last.process?.exitStatus).words),
    ...about(last.process?.end, ({ says }) => says),
    ...when(last.process?.presence === 'zombie', () => 'it is a zombie: its parent has not asked how it ended'),
    ...lines,
    ...kernel
      .filter(({ kind, isOurs }) => kind === 'oom' && isOurs)
      .slice(-2)
      .map(({ text }) => `the kernel: ${text}`),
    ...when(groupOomKills > 0, () => `its memory group: oom_kill ${groupOomKills}`),
    ...when(isReady && health?.kind === 'refused', () => 'it had been ready, and its port is closed'),
    ...when(orphans.length > 0, () => `ranks without a server are left: pid ${orphans.join(', ')}`),
    ...when(portHeldBy !== '', () => `its port is held by ${portHeldBy}`),
    ...about(account.shutdown, ({ line }) => `line ${line}: someone asked it to end`),
  ];
  const against = [
    ...when(
      isAlive,
      () => `pid ${process?.pid ?? 0} is there${process?.ageMs === undefined ? '' : `, for ${formatDuration(process.ageMs)}`}`,
    ),
    ...when(health?.kind === 'http', () => `its port answers: ${health?.kind === 'http' ? health.status : 0}`),
    ...when(account.lines > 0 && lines.length === 0, () => 'no line of its log says that a part ended'),
  ];
  return { name: 'crashed', for: reasons, against };
}

/** Lines that say that a part ended, after its last sign of life. */
function endsOf({ deaths, lastProgress, openTraceback }: Account): string[] {
  const last = deaths.filter(({ line }) => line > (lastProgress?.line ?? 0)).slice(-3);
  if (last.length > 0) return last.map(({ line, text }) => `line ${line}: ${text.trim().slice(0, QUOTED)}`);
  return about(openTraceback, ({ line }) => `line ${line}: a traceback, and nothing after it`);
}
