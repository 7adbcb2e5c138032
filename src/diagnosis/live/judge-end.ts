/**
 * A process that is gone. Pure. The log says why where it can; else the exit status; else it died without a word. The status of
 * the main process alone proves nothing: engines kill their own tree with SIGKILL after any fault.
 */
import { formatDuration } from '../../base/units.ts';
import type { Account, End } from '../account.ts';
import { phaseNow } from '../account-view.ts';
import { livedOn } from '../track-findings.ts';
import { isProbeLine } from '../watch.ts';
import type { LiveVerdict } from './look.ts';
import { since } from './movement.ts';
import { type Exit, readExit } from './read-exit.ts';
import { change, type LookInput, logVerdict, sayHealth } from './view.ts';

const STILL = { stillForMs: 0, limitMs: 0 };
/** Signals by which people and supervisors end a program in order. */
const ASKING = new Set([2, 15]);

/** Undefined where it lives, or nobody knows. */
export function judgeEnd(input: LookInput): LiveVerdict | undefined {
  const { account, looks } = input;
  const look = looks.at(-1);
  const process = look?.process;
  if (look === undefined || process === undefined) return undefined;
  if (process.presence !== 'gone' && process.presence !== 'zombie') return undefined;
  const exit = readExit(process.exitStatus);
  const goneSince = since(looks, (one) => one.process?.presence === process.presence) ?? look.atMs;
  const zombie = process.presence === 'zombie' ? ['its main process is a zombie: its parent has not asked how it ended'] : [];
  const { end } = process;
  const signs = [
    exit.words,
    ...(end === undefined ? [] : [end.says]),
    ...zombie,
    `gone for ${formatDuration(look.atMs - goneSince)}`,
    sayHealth(look.health),
  ];
  const ended = asDead(account);
  const shown = logVerdict(input, ended, 0);
  // Of an empty log there is no line to show.
  const dead = { ...shown, evidence: shown.evidence.filter(({ text }) => text.trim() !== '') };
  const told = whoAsked(input, exit, logVerdict(input, account, 0).state === 'crashed');
  if (told !== undefined) return change(input, dead, { state: 'stopped', phase: '', code: 'none', note: told }, STILL, signs);
  // Whoever limits the memory says so itself; the log of what was killed can only lack an end.
  if (end?.isOutOfMemory === true && (dead.cause === 'unknown' || dead.cause === 'none'))
    return change(
      input,
      dead,
      { state: 'crashed', phase: phaseNow(account), code: 'host-ram-oom-kill', confidence: 'high' },
      STILL,
      signs,
    );
  if (dead.cause !== 'unknown' || saysWhy(ended)) return change(input, dead, { state: 'crashed' }, STILL, signs);
  const code = byStatus(exit, account);
  const phase = phaseNow(account);
  const numbers = exit.status === undefined ? {} : { exitStatus: exit.status };
  return change(input, dead, { state: 'crashed', phase, code, confidence: 'medium', numbers }, STILL, signs);
}

/** The log with the news that the process ended, which the log itself may not hold. */
function asDead(account: Account): Account {
  const { found, deaths, lifeAfter, lastProgress } = account;
  // What a server outlived is not what ended it later.
  const lastSign = Math.max(...[...deaths, ...found].map(({ at }) => at ?? Number.NEGATIVE_INFINITY));
  const isOutlived = livedOn(lifeAfter, Number.isFinite(lastSign) ? lastSign : undefined);
  const current = isOutlived ? found.filter(({ line }) => line > (lastProgress?.line ?? 0)) : found;
  const news: End = { ...lastOwnLine(account), at: account.lastAt, isSaid: false };
  return {
    ...account,
    found: current,
    openTraceback: isOutlived ? undefined : account.openTraceback,
    deaths: isOutlived ? [news] : [...deaths, news],
    lifeAfter: { count: 0, last: undefined, isReady: false },
  };
}

/** Its last line that no probe has caused: Aerie's own stand behind it, and tell nothing of an end. */
function lastOwnLine({ tail, lines }: Account): { readonly line: number; readonly text: string } {
  const own = tail.findLast(({ text }) => text.trim() !== '' && !isProbeLine(text));
  return own ?? { line: lines, text: tail.at(-1)?.text ?? '' };
}

/** Who asked it to end, in words; a fault that came first is a crash all the same, unless Aerie asked. */
function whoAsked({ account, isAskedToEnd }: LookInput, exit: Exit, hadCrashed: boolean): string | undefined {
  if (isAskedToEnd === true) return 'Aerie asked it to end.';
  if (hadCrashed) return undefined;
  if (account.shutdown !== undefined) return `Line ${account.shutdown.line}: someone asked it to end.`;
  if (exit.signal !== undefined && ASKING.has(exit.signal)) return 'Someone asked it to end, by a signal.';
  if (exit.status === 0) return 'It ended by itself, in order.';
  return undefined;
}

/** The log itself shows an end, besides the news of it. */
function saysWhy({ deaths, openTraceback, found }: Account): boolean {
  return deaths.length > 1 || openTraceback !== undefined || found.some(({ rule }) => rule.state === 'crashed');
}

/** What a shell answers for a command that it does not find (127) or may not run (126). */
const NO_COMMAND = [126, 127];

function byStatus({ signal, status }: Exit, account: Account): string {
  // A server that was ready had been found; its wrapper may end with any status.
  if (status !== undefined && NO_COMMAND.includes(status) && account.ready === undefined) return 'engine-not-installed';
  if (signal === 11) return 'segmentation-fault';
  // Weights are mapped files; elsewhere the ranks' shared memory is what runs out.
  if (signal === 7) return phaseNow(account) === 'weight-loading' ? 'bus-error-mmap-weights' : 'dev-shm-exhausted';
  return 'died-without-a-word';
}
