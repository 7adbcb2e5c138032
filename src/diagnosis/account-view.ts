/** What is read from an account in more than one judgement. Pure. */
import type { Account, Sighting } from './account.ts';
import { hasCaptured } from './judge-silence.ts';
import type { Phase } from './verdict.ts';

export function hasWorked({ work, answers }: Account): boolean {
  return (
    answers.good + answers.refused > 0 ||
    work.some(({ isProbe, running, generated, prompted }) => !isProbe && running + generated + prompted > 0)
  );
}

export function phaseNow(account: Account): Phase | '' {
  const hasStarted = hasWorked(account) || account.ready !== undefined || (hasCaptured(account) && account.notices.length > 0);
  return hasStarted ? 'serving' : account.phase;
}

export function lastAnswer({ answers }: Account): Sighting[] {
  return answers.last === undefined ? [] : [answers.last];
}

export function lastWork(account: Account): Sighting[] {
  return [...account.work.slice(-2), ...lastAnswer(account)].sort((a, b) => a.line - b.line);
}

export function lastLines({ phaseBegan, lastBar, tail }: Account): Sighting[] {
  const last = tail
    .filter(({ text }) => text.trim() !== '')
    .slice(-1)
    .map((line) => ({ ...line, at: undefined }));
  const lines = [phaseBegan, lastBar, ...last].filter((one) => one !== undefined);
  return lines.filter((one, at) => lines.findIndex(({ line }) => line === one.line) === at);
}

export function lookedAt(account: Account): string[] {
  const { lines, facts, phase, ready, found } = account;
  const deaths = account.deaths.filter(({ isSaid }) => isSaid !== false);
  const seen = [
    `${lines} lines were read${facts.engine === undefined ? '; no line is of SGLang or vLLM' : ` of ${facts.engine}`}.`,
  ];
  if (ready !== undefined) seen.push(`Line ${ready.line}: it had been ready.`);
  else if (phase !== '') seen.push(`The start had reached ${phase}.`);
  if (deaths.length > 0)
    seen.push(
      `Lines that say that a part ended: ${deaths
        .map(({ line }) => line)
        .slice(0, 5)
        .join(', ')}.`,
    );
  seen.push(
    found.length === 0
      ? 'No line fits a rule.'
      : `Lines that fit a rule and do not explain it: ${found
          .map(({ line, rule }) => `${line} (${rule.code})`)
          .slice(0, 5)
          .join(', ')}.`,
  );
  return seen;
}
