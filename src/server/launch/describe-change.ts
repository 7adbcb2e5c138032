/** What two launches explain, in lines for people. Pure. */
import { formatCount } from '../../base/units.ts';
import type { GainExplained } from '../../twin/explain-gain.ts';
import type { ChangeExplained, ChangeQuestion, LaunchSeen } from './changed-launch.ts';
import { sayValue } from './levers.ts';

export function describeChange(question: ChangeQuestion, explained: Omit<ChangeExplained, 'lines'>): string[] {
  const { before, after } = question;
  const { levers, poolFactor, gain, confounded, clientLimited, separate } = explained;
  const head = `${before.name} → ${after.name}: ${levers.length} ${levers.length === 1 ? 'lever' : 'levers'} changed; ${sayPools(question, poolFactor)}.`;
  const each = levers.map(
    ({ name, from, to, poolFactor: own, because }) =>
      `${name} ${sayValue(from)} → ${sayValue(to)}: ${own === undefined ? 'confounded' : `${times(own)} of the pool`}; ${because}.`,
  );
  return [
    head,
    ...each,
    ...(gain === undefined ? ['Not both were seen at work: nothing is said of speed.'] : [sayGain(question, gain)]),
    ...(confounded === undefined ? [] : [sayConfounded(confounded, clientLimited)]),
    ...clientLimited.map((which) => sayClient(question[which])),
    ...(separate === undefined ? [] : [`To separate them: ${separate.because}`]),
  ];
}

function sayPools({ before, after }: ChangeQuestion, poolFactor: number | undefined): string {
  if (poolFactor === undefined) return 'the pool of one of them is not known';
  return `the pool has ${formatCount(after.verified.poolTokens)} tokens instead of ${formatCount(before.verified.poolTokens)}, ${times(poolFactor)}`;
}

function sayGain(
  { before, after }: ChangeQuestion,
  { runningFactor, tokensPerSecondFactor, tokensPerRequest }: GainExplained,
): string {
  const [first, second] = tokensPerRequest;
  const pace = ({ load }: LaunchSeen) => ((load?.tokensPerSecond ?? 0) / (load?.running || 1)).toFixed(1);
  return `${times(runningFactor)} running (${before.load?.running} → ${after.load?.running}), ${times(tokensPerSecondFactor)} tok/s; a request gets ${pace(before)} tok/s before and ${pace(after)} after, and has ${formatCount(first)} and ${formatCount(second)} tokens of the pool.`;
}

function sayConfounded(
  { factor, isLowerBound, among }: NonNullable<ChangeExplained['confounded']>,
  clientLimited: readonly string[],
): string {
  const bound = isLowerBound ? ' at least' : clientLimited.length > 0 ? ' (the pool did not limit both)' : '';
  return `${times(factor)}${bound} of the running requests is confounded: it may be due to ${namesOf(among.map((name) => ({ name })))}.`;
}

function sayClient({ name, load }: LaunchSeen): string {
  return `"${name}" is client-limited: queue ${load?.queued} at the client's own ${load?.inFlight}. What its pool could hold was not seen; ask for more.`;
}

export function namesOf(levers: readonly { readonly name: string }[]): string {
  const names = levers.map(({ name }) => name);
  return names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

export const times = (factor: number) => `${factor.toFixed(2)}x`;
