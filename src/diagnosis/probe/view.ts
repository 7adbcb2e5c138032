/** What the four hypotheses of a probe share: the evidence with what was drawn from it, and how reasons are put together. Pure. */
import { formatBytes, formatDuration } from '../../base/units.ts';
import type { Account } from '../account.ts';
import { hasWorked } from '../account-view.ts';
import type { Activity, ProbeEvidence, Reading } from './evidence.ts';
import { type Quiet, quietOf } from './since-when.ts';

export interface View {
  readonly evidence: ProbeEvidence;
  readonly activity: Activity;
  readonly account: Account;
  readonly first: Reading;
  readonly last: Reading;
  readonly quiet: Quiet;
  readonly isReady: boolean;
  readonly isGone: boolean;
  readonly isAlive: boolean;
}

/** undefined where nothing was read. */
export function viewOf(evidence: ProbeEvidence, activity: Activity): View | undefined {
  const [first, last] = [evidence.readings[0], evidence.readings.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const { account, process } = last;
  return {
    ...{ evidence, activity, account, first, last, quiet: quietOf(evidence) },
    isReady: account.ready !== undefined || hasWorked(account),
    isGone: process?.presence === 'gone' || process?.presence === 'zombie',
    isAlive: process?.presence === 'running',
  };
}

/** A reason that counts only where it is so. */
export function when(isSo: boolean, say: () => string): string[] {
  return isSo ? [say()] : [];
}

/** A reason that is made of something that may not be known. */
export function about<T>(known: T | undefined, say: (known: T) => string): string[] {
  return known === undefined ? [] : [say(known)];
}

export function answered({ evidence: { health } }: View, status: number): boolean {
  return health?.kind === 'http' && health.status === status;
}

export function isSlowHealth({ evidence: { health } }: View): boolean {
  return health?.kind === 'timeout' || (health?.kind === 'http' && health.status >= 500);
}

export function sayStill(ms: number, limitMs: number): string {
  return `nothing has moved for ${formatDuration(ms)}; ${formatDuration(limitMs)} may pass`;
}

/** What of a start moved between the two readings. */
export function moves({ first, last }: View): string[] {
  if (first === last) return [];
  const over = formatDuration(last.atMs - first.atMs);
  const [before, after] = [first.process, last.process];
  const grown = (name: string, was: number | undefined, is: number | undefined, least: number) =>
    was === undefined || is === undefined || Math.abs(is - was) < least
      ? []
      : [`${name} ${is > was ? 'grew' : 'fell'} by ${formatBytes(Math.abs(is - was))} in ${over}`];
  const bytes = last.account.ownBytes - first.account.ownBytes;
  return [
    ...(bytes > 0 ? [`its log grew by ${formatBytes(bytes)} in ${over}`] : []),
    ...grown('resident memory', before?.residentBytes, after?.residentBytes, 16 * MIB),
    ...grown('what it has read', before?.readBytes, after?.readBytes, MIB),
    ...grown('GPU memory', mebi(before?.gpuUsedMiB), mebi(after?.gpuUsedMiB), 16 * MIB),
    ...((after?.compilers ?? 0) > 0 ? [`${after?.compilers} compilers are at work`] : []),
  ];
}

const MIB = 2 ** 20;

function mebi(value: number | undefined): number | undefined {
  return value === undefined ? undefined : value * MIB;
}
