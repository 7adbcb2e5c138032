/**
 * What a probe has seen → the state, why, what the server does for others, and the four things it could be. Pure.
 * Promises: the judge is the one of a watched server (`live/judge-look.ts`); a health check that has no answer yet makes nobody
 * unresponsive by itself; what the kernel and the memory limit say of an end goes before the exit status.
 */
import { formatDuration } from '../../base/units.ts';
import { hasWorked } from '../account-view.ts';
import { judgeLook, type LookInput } from '../live/judge-look.ts';
import type { LiveVerdict } from '../live/look.ts';
import { change, isSick, logVerdict } from '../live/view.ts';
import { activityOf } from './activity.ts';
import type { Activity, ProbeEvidence, ProbeHypothesis } from './evidence.ts';
import { saySilent } from './hung.ts';
import { hypothesesOf } from './hypotheses.ts';
import { looksOf } from './looks.ts';

export interface ProbeVerdict {
  readonly verdict: LiveVerdict;
  readonly activity: Activity;
  readonly hypotheses: readonly ProbeHypothesis[];
}

export function judgeProbe(evidence: ProbeEvidence): ProbeVerdict {
  const activity = activityOf(evidence);
  const verdict = judge(evidence, activity);
  return { verdict, activity, hypotheses: hypothesesOf(evidence, activity) };
}

function judge(evidence: ProbeEvidence, activity: Activity): LiveVerdict {
  const account = evidence.readings.at(-1)?.account;
  if (account === undefined) throw new Error('a probe without a reading');
  const { isAskedToEnd, checkRemedy } = evidence;
  const input: LookInput = {
    ...{ account, looks: looksOf(evidence), isAskedToEnd },
    ...(checkRemedy === undefined ? {} : { checkRemedy }),
  };
  const verdict = judgeLook(input);
  return (
    killed(evidence, input, verdict) ??
    workersGone(evidence, input) ??
    pendingOnly(evidence, activity, input, verdict) ??
    strangerOnly(evidence, input, verdict) ??
    schedulerMute(evidence, activity, input, verdict) ??
    verdict
  );
}

/** It ended without a word, and the kernel has one. */
function killed(
  { kernel, groupOomKills = 0, process }: ProbeEvidence,
  input: LookInput,
  verdict: LiveVerdict,
): LiveVerdict | undefined {
  if (verdict.state !== 'crashed' || verdict.cause !== 'died-without-a-word') return undefined;
  const ours = kernel.find(({ kind, isOurs }) => kind === 'oom' && isOurs);
  if (ours === undefined && groupOomKills === 0) return undefined;
  const said = ours === undefined ? sayGroupKills(groupOomKills) : `the kernel: ${ours.text}`;
  const pid = process === undefined ? '' : ` of pid ${process.pid}`;
  const base = logVerdict(input, input.account, 0);
  const to = {
    ...({ state: 'crashed', phase: verdict.phase, code: 'host-ram-oom-kill' } as const),
    ...({
      confidence: ours === undefined ? 'medium' : 'high',
      note: `The end${pid} is told by the kernel, not by the log.`,
    } as const),
  };
  return change(input, { ...base, cause: 'died-without-a-word' }, to, { stillForMs: 0, limitMs: 0 }, [said, ...verdict.signs]);
}

export function sayGroupKills(count: number): string {
  return `its memory group has ended ${count} ${count === 1 ? 'process' : 'processes'} for lack of memory (oom_kill)`;
}

/** Both readings find a front end of SGLang that has been ready, and none of the processes that compute for it. */
function workersGone({ engine, readings, process }: ProbeEvidence, input: LookInput): LiveVerdict | undefined {
  const { account } = input;
  const wasReady = account.ready !== undefined || hasWorked(account);
  const isAlone =
    readings.length > 1 && readings.every(({ process: seen }) => seen?.presence === 'running' && seen.children === 0);
  if (engine !== 'sglang' || !wasReady || !isAlone) return undefined;
  const base = logVerdict(input, account, 0);
  const code = base.state === 'hung' || base.state === 'crashed' ? base.cause : 'workers-gone';
  const signs = [`pid ${process?.pid ?? 0} lives and has no scheduler: nobody computes behind its port`];
  return change(input, base, { state: 'hung', phase: 'serving', code, confidence: 'high' }, { stillForMs: 0, limitMs: 0 }, signs);
}

/** It may be busy, and nothing but the waiting health check says otherwise. */
function pendingOnly(
  { health, readings, log }: ProbeEvidence,
  activity: Activity,
  input: LookInput,
  verdict: LiveVerdict,
): LiveVerdict | undefined {
  if (verdict.state !== 'unresponsive' || health?.kind !== 'timeout' || !isSick(health)) return undefined;
  const isCounted = readings.length > 1 && readings.every(({ counters }) => counters !== undefined);
  const knowsStill = isCounted || (log !== undefined && activity.lastWork?.agoMs !== undefined);
  if (knowsStill) return undefined;
  const base = logVerdict(input, input.account, 0);
  const note = `Health had no answer in ${formatDuration(health.afterMs)}, and nothing else shows whether it works: SGLang answers after its running step.`;
  const to = { state: base.state === 'hung' ? 'serving' : base.state, confidence: 'low', note } as const;
  return change(input, base, to, { stillForMs: 0, limitMs: 0 }, verdict.signs);
}

/** A gateway, a page, something else: its port sends elsewhere, asks who is there or has no such path, and nothing of an engine was seen. */
function strangerOnly(
  { health, readings, isAccountTold }: ProbeEvidence,
  input: LookInput,
  verdict: LiveVerdict,
): LiveVerdict | undefined {
  if (health?.kind !== 'http' || health.status < 300 || isSick(health) || isAccountTold) return undefined;
  const isEngine = readings.some(
    ({ account, counters, process }) => process !== undefined || counters !== undefined || account.recognised > 0,
  );
  if (isEngine) return undefined;
  const base = logVerdict(input, input.account, 0);
  return change(input, base, { state: 'absent', phase: '', code: 'none' }, { stillForMs: 0, limitMs: 0 }, verdict.signs);
}

/**
 * Its health says 200 by itself, as that of SGLang before 0.4.7 does, and its scheduler has told nothing all the while. One that is
 * busy with a long step keeps a health check waiting just as long, and lines or counters of work speak for it.
 */
function schedulerMute(
  { health, schedulerSilentMs }: ProbeEvidence,
  activity: Activity,
  input: LookInput,
  verdict: LiveVerdict,
): LiveVerdict | undefined {
  const claims = verdict.state === 'ready' || verdict.state === 'serving';
  if (!claims || schedulerSilentMs === 0 || activity.kind === 'working') return undefined;
  if (health?.kind !== 'http' || health.afterMs >= schedulerSilentMs) return undefined;
  const base = logVerdict(input, input.account, 0);
  const to = { state: 'unresponsive', phase: 'serving', code: 'worker-stuck-no-progress', confidence: 'low' } as const;
  return change(input, base, to, { stillForMs: schedulerSilentMs, limitMs: 0 }, [saySilent(schedulerSilentMs), ...verdict.signs]);
}
