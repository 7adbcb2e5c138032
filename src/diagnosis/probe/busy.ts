/** It is well and busy, or at rest: an answer that is late is no sign of anything. Pure. */
import { formatCount, formatDuration } from '../../base/units.ts';
import { sayHealth } from '../live/view.ts';
import { sayAgo } from './activity.ts';
import type { ProbeHypothesis } from './evidence.ts';
import { about, answered, isSlowHealth, type View, when } from './view.ts';

export function busy(view: View): ProbeHypothesis {
  const { evidence, activity, account, isReady, isGone } = view;
  const { generatedTokens, promptTokens = 0, lastWork, overMs, running = 0, waiting = 0, kind } = activity;
  const moved = (generatedTokens ?? 0) + promptTokens;
  const isWell = answered(view, 200);
  const isWorking = kind === 'working';
  const unexplained = isReady && account.lifeAfter.count === 0 ? account.found.at(-1) : undefined;
  const reasons = [
    ...when(isWell, () => 'health: 200; an empty body is its usual answer'),
    ...when(moved > 0, () => `${formatCount(moved)} tokens in ${formatDuration(overMs)}`),
    ...when(running > 0, () => `${running} run, ${waiting} are queued`),
    ...about(isWorking ? lastWork : undefined, ({ line, agoMs }) => `line ${line} of its log is work${sayAgo(agoMs)}`),
    ...when(isWorking && isSlowHealth(view), () => `${sayHealth(evidence.health)}: it is answered after the running step`),
  ];
  const against = [
    ...when(isGone, () => 'its process is gone'),
    ...when(!isReady && !isWell, () => 'it has not said that it is ready'),
    ...when(kind === 'probes', () => 'all that moves is caused by probes'),
    ...when(kind === 'idle', () => 'nobody asks it: it is at rest'),
    ...when(generatedTokens === 0 && running > 0, () => `no token in ${formatDuration(overMs)}`),
    ...about(unexplained, ({ line, rule }) => `line ${line}: ${rule.title}`),
  ];
  return { name: 'busy', for: reasons, against };
}
