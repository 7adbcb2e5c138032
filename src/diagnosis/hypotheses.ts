/** What else it could be: slow, hung, silently dead, ready but mute, each with what speaks for and against it. Pure. */
import { formatDuration } from '../base/units.ts';
import type { Account } from './account.ts';
import { hasWorked } from './account-view.ts';
import { type JudgeOptions, judgeSilence } from './judge-silence.ts';
import type { Judgement } from './judgement.ts';
import type { Hypothesis } from './verdict.ts';

/** Only while a server neither ended nor clearly works: there one asks which it is. */
export function hypothesise(account: Account, { state }: Judgement, options: JudgeOptions): Hypothesis[] {
  if (state === 'crashed' || state === 'degraded') return [];
  const silence = judgeSilence(account, options);
  const what = options.stillMs === undefined ? 'nothing was written' : 'nothing has moved';
  const quiet =
    silence.forMs === undefined
      ? undefined
      : `${what} for ${formatDuration(silence.forMs)}; this phase may be silent for ${formatDuration(silence.limitMs)}`;
  return [
    slow(account, quiet, silence.isTooLong),
    hung(account, quiet, silence.isTooLong),
    dead(account, quiet, silence.isTooLong),
    mute(account),
  ];
}

function slow(account: Account, quiet: string | undefined, isTooLong: boolean): Hypothesis {
  const { progress, phase, compiling, secondsEach } = account;
  const reasons: string[] = [];
  if (progress !== undefined) reasons.push(`${phase} stands at ${progress.done} of ${progress.of}`);
  if (secondsEach !== undefined && secondsEach > 1) reasons.push(`each step of it takes ${secondsEach.toFixed(0)} s`);
  if (compiling !== undefined) reasons.push('a kernel is being compiled');
  if (quiet !== undefined && !isTooLong) reasons.push(quiet);
  return { name: 'slow', for: reasons, against: quiet !== undefined && isTooLong ? [quiet] : [] };
}

function hung(account: Account, quiet: string | undefined, isTooLong: boolean): Hypothesis {
  const reasons: string[] = [];
  if (quiet !== undefined && isTooLong) reasons.push(quiet);
  if (account.notices.length > 0)
    reasons.push(`${account.notices.length} notices that workers take no message, and nothing since`);
  const against = [
    ...(account.lastProgress === undefined ? [] : [`the last sign of progress is line ${account.lastProgress.line}`]),
    ...(quiet !== undefined && !isTooLong ? [quiet] : []),
  ];
  return { name: 'hung', for: reasons, against };
}

function dead(account: Account, quiet: string | undefined, isTooLong: boolean): Hypothesis {
  const reasons = quiet !== undefined && isTooLong ? [quiet, 'a process killed by the kernel writes nothing'] : [];
  const against = account.deaths.length === 0 ? ['no line says that a part ended'] : [];
  return { name: 'silently dead', for: reasons, against };
}

function mute(account: Account): Hypothesis {
  const isReady = account.ready !== undefined;
  const reasons = isReady && !hasWorked(account) ? ['it said that it is ready, and no request was answered since'] : [];
  const against = isReady
    ? hasWorked(account)
      ? ['requests are answered']
      : ['nobody may have asked: probes are not counted']
    : ['it has not said that it is ready'];
  return { name: 'ready but mute', for: reasons, against };
}
