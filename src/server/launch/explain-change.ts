/**
 * Two verified launches of one server that differ in one or more levers → what of the gain each lever explains by arithmetic, what
 * nobody can tell apart, and the one launch that would. Pure.
 * Promises: a factor is given to a lever only where a formula gives it; what is left is called confounded, with what it may be due
 * to; a point at which the client asked for no more says so. Points are told as they were seen: nothing is extrapolated.
 */
import { formatCount } from '../../base/units.ts';
import { explainGain, type GainExplained } from '../../twin/explain-gain.ts';
import type { ChangeExplained, ChangeQuestion, LaunchSeen, LeverEffect, LoadSeen, Separation } from './changed-launch.ts';
import { describeChange, namesOf, times } from './describe-change.ts';
import { findLevers, type Lever, sayValue, withoutLevers } from './levers.ts';

export type { ChangeExplained, ChangeQuestion, LaunchSeen, LoadSeen } from './changed-launch.ts';

/** Points are means of noisy minutes: 5 % is no difference. */
const NOISE = 0.05;
/** A pool is exact to its page; facts of two decimals give it within 0.2 %. */
const POOL_NOISE = 0.01;

export function explainChange(question: ChangeQuestion): ChangeExplained {
  const { before, after } = question;
  const levers = allLevers(before, after);
  const poolFactor = ratio(after.verified.poolTokens, before.verified.poolTokens);
  const dtypeFactor = ratio(before.verified.kvType.bits, after.verified.kvType.bits);
  const bytesFactor = ratio(poolFactor, dtypeFactor);
  const effects = levers.map((lever) => effectOf(lever, levers, { dtypeFactor, bytesFactor, question }));
  const gain = poolFactor === undefined ? undefined : gainOf(before, after, dtypeFactor ?? 1);
  const clientLimited = (['before', 'after'] as const).filter((which) => isClientLimited(question[which].load));
  const confounded = confoundedOf(gain, clientLimited, levers);
  const parts = { levers: effects, poolFactor, dtypeFactor, bytesFactor, gain, clientLimited, confounded };
  const separate = separationOf(question, levers, bytesFactor);
  return { ...parts, separate, lines: describeChange(question, { ...parts, separate }) };
}

/** A type that changed without its flag is a lever too: engines turn `auto` into FP8 without a word. */
function allLevers(before: LaunchSeen, after: LaunchSeen): Lever[] {
  const levers = findLevers(before, after);
  const [from, to] = [before.verified.kvType, after.verified.kvType];
  const isHidden = from.bits !== undefined && to.bits !== undefined && from.bits !== to.bits;
  if (!isHidden || levers.some(({ kind }) => kind === 'kv-type')) return levers;
  return [...levers, { name: 'kv-cache-dtype', kind: 'kv-type', isVariable: false, from: from.type, to: to.type }];
}

/** 0 stands for a pool that nobody could read. */
function ratio(over: number | undefined, under: number | undefined): number | undefined {
  return over === undefined || under === undefined || over <= 0 || under <= 0 ? undefined : over / under;
}

interface Pools {
  readonly dtypeFactor: number | undefined;
  readonly bytesFactor: number | undefined;
  readonly question: ChangeQuestion;
}

function effectOf(lever: Lever, levers: readonly Lever[], { dtypeFactor, bytesFactor, question }: Pools): LeverEffect {
  const { kind } = lever;
  const { before, after } = question;
  if (kind === 'kv-type') {
    const [from, to] = [before.verified.kvType, after.verified.kvType];
    if (from.bits === undefined || to.bits === undefined)
      return { ...lever, poolFactor: undefined, because: 'the type of the KV cache is not known of both launches' };
    return { ...lever, poolFactor: dtypeFactor, because: `${from.bits} → ${to.bits} bits for each value of the KV cache` };
  }
  if (kind === 'host-cache')
    return {
      ...lever,
      poolFactor: 1,
      because: 'it keeps prefixes in host memory, and no token of a request that runs: it adds nothing to the pool',
    };
  if (kind === 'other')
    return { ...lever, poolFactor: undefined, because: 'no formula says what it adds to speed or to running requests' };
  return { ...lever, ...poolEffect(lever, levers, { bytesFactor, question }) };
}

/** One lever of the pool's bytes has all that they grew by; of several the plan says each one's, if it can. */
function poolEffect(
  lever: Lever,
  levers: readonly Lever[],
  { bytesFactor, question: { before, after, predictPool } }: Omit<Pools, 'dtypeFactor'>,
): Pick<LeverEffect, 'poolFactor' | 'because'> {
  const sharers = levers.filter(({ kind }) => kind === 'pool').length;
  const alone = { ...withoutLevers(before.flags, [{ ...lever, from: lever.to }]) };
  const predicted = ratio(predictPool?.(alone), before.verified.poolTokens);
  const own = predicted ?? (sharers === 1 ? bytesFactor : undefined);
  if (bytesFactor === undefined) return { poolFactor: predicted, because: 'the pool or its type is not known of both launches' };
  if (own === undefined)
    return { poolFactor: own, because: `${sharers} levers change the pool's bytes together, ${times(bytesFactor)}` };
  const [left, leaves] = [before.verified.freeAfterGraphsGiB, after.verified.freeAfterGraphsGiB];
  const room = left === undefined || leaves === undefined ? '' : `, and leaves ${leaves} GiB per GPU instead of ${left}`;
  const differs = Math.abs(bytesFactor / own - 1) > POOL_NOISE;
  return {
    poolFactor: own,
    because: `it changes the bytes of the pool${room}${differs ? `; they grew ${times(bytesFactor)} in all` : ''}`,
  };
}

function gainOf(before: LaunchSeen, after: LaunchSeen, dtypeFactor: number): GainExplained | undefined {
  if (before.load === undefined || after.load === undefined || before.load.running === 0) return undefined;
  const point = ({ name, verified, load }: LaunchSeen, bytesPerToken: number) => ({
    ...{ name, bytesPerToken, poolTokens: verified.poolTokens },
    ...(load as LoadSeen),
  });
  // Only their ratio is used.
  return explainGain(point(before, dtypeFactor), point(after, 1));
}

function isClientLimited(load: LoadSeen | undefined): boolean {
  return load !== undefined && load.queued < 0.5 && load.running >= 0.85 * load.inFlight;
}

function confoundedOf(
  gain: GainExplained | undefined,
  clientLimited: readonly ('before' | 'after')[],
  levers: readonly Lever[],
): ChangeExplained['confounded'] {
  if (gain === undefined) return undefined;
  const factor = gain.confoundedFactor;
  const opaque = levers.filter(({ kind }) => kind === 'other' || kind === 'host-cache').map(({ name }) => name);
  const isLowerBound = clientLimited.includes('after') && !clientLimited.includes('before');
  if (Math.abs(factor - 1) <= NOISE && !isLowerBound && opaque.length === 0) return undefined;
  return { factor, isLowerBound, among: [...opaque, 'lengths and age of the requests'] };
}

/** Everything that no formula explains is taken back at once; where all is arithmetic, the KV type, which costs most trust. */
function separationOf(
  { before, after, predictPool }: ChangeQuestion,
  levers: readonly Lever[],
  bytesFactor: number | undefined,
): Separation | undefined {
  if (levers.length < 2) return undefined;
  const opaque = levers.filter(({ kind }) => kind === 'other' || kind === 'host-cache');
  const kvType = levers.filter(({ kind }) => kind === 'kv-type');
  const back = opaque.length > 0 && opaque.length < levers.length ? opaque : kvType.length > 0 ? kvType : opaque.slice(0, 1);
  const [first] = back;
  if (first === undefined || back.length === levers.length) return undefined;
  const flags = withoutLevers(after.flags, back);
  const isKvBack = back.some(({ kind }) => kind === 'kv-type');
  const grown = isKvBack ? (bytesFactor ?? 0) * before.verified.poolTokens : after.verified.poolTokens;
  const pool = predictPool?.(flags) ?? grown;
  const taken = back.map(({ name, from }) => `${name} ${from === undefined ? 'left out' : `= ${sayValue(from)}`}`).join(' and ');
  const because = `"${after.name}" with ${taken}, under the same load and once as many requests have ended as run.${pool > 0 ? expectation(before, pool, back) : ''}`;
  return { flags, env: environmentOf(after, back), because };
}

function expectation({ load, verified }: LaunchSeen, pool: number, back: readonly Lever[]): string {
  const size = ` Its pool has ${formatCount(pool)} tokens.`;
  if (load === undefined || verified.poolTokens <= 0 || isClientLimited(load)) return size;
  const running = Math.min(load.inFlight, (load.running * pool) / verified.poolTokens);
  return `${size} By the pool alone ${formatCount(running)} run of ${load.inFlight}; what is seen beyond that is not due to ${namesOf(back)}.`;
}

function environmentOf({ env = {} }: LaunchSeen, back: readonly Lever[]): Record<string, string> {
  const variables = new Map(back.filter(({ isVariable }) => isVariable).map(({ name, from }) => [name, from]));
  const kept = Object.entries(env).filter(([name]) => !variables.has(name));
  const put = [...variables].flatMap(([name, from]) => (from === undefined ? [] : [[name, sayValue(from)] as const]));
  return Object.fromEntries([...kept, ...put]);
}
