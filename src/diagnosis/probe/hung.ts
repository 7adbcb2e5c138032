/** It is hung: something waits for it, and nothing of it moves. Pure. */
import { formatDuration } from '../../base/units.ts';
import { limitOf } from '../judge-silence.ts';
import { workLimitOf } from '../live/judge-serving.ts';
import { sayHealth } from '../live/view.ts';
import type { ProbeHypothesis } from './evidence.ts';
import { about, isSlowHealth, moves, sayStill, type View, when } from './view.ts';

export function hung(view: View): ProbeHypothesis {
  const { account, evidence, activity, quiet, isReady, isGone } = view;
  const { health } = evidence;
  const limitMs = isReady ? workLimitOf(account) : limitOf(account);
  const stillMs = isReady ? quiet.progressMs : quiet.writtenMs;
  const moved = isReady ? [] : moves(view);
  const isTooLong = stillMs !== undefined && stillMs > limitMs && moved.length === 0 && (!isReady || isAwaited(view));
  const reasons = [
    ...inside(view),
    ...when(isTooLong, () => sayStill(stillMs ?? 0, limitMs)),
    ...about(
      account.notices.at(-1),
      ({ line }) => `line ${line}: workers take no message, ${account.notices.length} such lines and no progress since`,
    ),
    ...when(isSlowHealth(view), () => sayHealth(health)),
    ...outside(view),
    ...account.found
      .filter(({ rule }) => rule.state === 'hung')
      .slice(-2)
      .map(({ line, rule }) => `line ${line}: ${rule.title}`),
  ];
  const against = [
    ...(activity.kind === 'working' ? activity.says.slice(0, 2) : []),
    ...when(activity.kind === 'idle', () => 'nobody asks it: nothing runs and nothing is queued'),
    ...moved,
    ...when(
      stillMs !== undefined && stillMs <= limitMs,
      () =>
        `${isReady ? 'its last progress' : 'its log'} is ${formatDuration(stillMs ?? 0)} old; ${formatDuration(limitMs)} may pass`,
    ),
    ...when(
      health?.kind === 'timeout',
      () => 'a health check that waits proves nothing alone: it is answered after the running step, which may take 20 s',
    ),
    ...when(isGone, () => 'its process is gone'),
  ];
  return { name: 'hung', for: isGone ? [] : reasons, against };
}

/** Somebody waits for it, by its counters, else by its last line of work. */
function isAwaited({ activity: { running, waiting }, account: { work } }: View): boolean {
  if (running !== undefined || waiting !== undefined) return (running ?? 0) + (waiting ?? 0) > 0;
  const last = work.findLast(({ isProbe }) => !isProbe);
  return last !== undefined && last.running + last.queued > 0;
}

/** What its processes and counters show. */
function inside({ evidence, activity, isReady, isAlive, last }: View): string[] {
  const { generatedTokens, running = 0, waiting = 0, overMs } = activity;
  const isAlone = isReady && isAlive && evidence.engine === 'sglang' && last.process?.children === 0;
  const stands = generatedTokens === 0 && running + waiting > 0;
  return [
    ...when(isAlone, () => 'its process has no scheduler any more: whatever it answers, nobody computes'),
    ...when(evidence.schedulerSilentMs > 0, () => saySilent(evidence.schedulerSilentMs)),
    ...when(stands, () => `no token in ${formatDuration(overMs)} while ${running} run and ${waiting} are queued`),
  ];
}

export function saySilent(ms: number): string {
  return `its front end answers, and what only its scheduler can tell (/server_info) had no answer in ${formatDuration(ms)}`;
}

/** What the kernel shows. */
function outside({ evidence: { process, kernel } }: View): string[] {
  const stuck = process?.uninterruptible ?? [];
  return [
    ...when(stuck.length > 0, () => `in the kernel and not to be ended (state D): pid ${stuck.join(', ')}`),
    ...kernel
      .filter(({ kind }) => kind === 'xid')
      .slice(-2)
      .map(({ text }) => `the kernel: ${text}`),
  ];
}
