/**
 * Two launches that differ in more than one thing: what of the gain follows from arithmetic, and what nobody can tell.
 *
 * More tokens in the pool come from fewer bytes per token (the KV type) and from more bytes; both factors are exact. What is
 * left of the gain in running requests has no single cause that these figures could show: it is called confounded.
 */
import { formatCount } from '../base/units.ts';

export interface LaunchPoint {
  readonly name: string;
  readonly poolTokens: number;
  readonly bytesPerToken: number;
  readonly running: number;
  readonly queued: number;
  readonly inFlight: number;
  readonly tokensPerSecond: number;
}

export interface GainExplained {
  readonly runningFactor: number;
  readonly tokensPerSecondFactor: number;
  /** Fewer bytes per token. */
  readonly dtypeFactor: number;
  /** More bytes in the pool. */
  readonly largerPoolFactor: number;
  /** What is left of `runningFactor`; a lower bound where the later point is client-limited. */
  readonly confoundedFactor: number;
  readonly isClientLimited: boolean;
  /** Pool tokens per running request, before and after: equal if nothing but the pool had changed and both were full. */
  readonly tokensPerRequest: readonly [number, number];
  readonly lines: readonly string[];
}

export function explainGain(before: LaunchPoint, after: LaunchPoint): GainExplained {
  const dtypeFactor = before.bytesPerToken / after.bytesPerToken;
  const largerPoolFactor = (after.poolTokens * after.bytesPerToken) / (before.poolTokens * before.bytesPerToken);
  const runningFactor = after.running / before.running;
  const isClientLimited = after.queued < 0.5 && after.running >= 0.85 * after.inFlight;
  const explained = {
    runningFactor,
    tokensPerSecondFactor: after.tokensPerSecond / before.tokensPerSecond,
    dtypeFactor,
    largerPoolFactor,
    confoundedFactor: runningFactor / (dtypeFactor * largerPoolFactor),
    isClientLimited,
    tokensPerRequest: [before.poolTokens / before.running, after.poolTokens / after.running] as const,
  };
  return { ...explained, lines: linesOf(before, after, explained) };
}

function linesOf(before: LaunchPoint, after: LaunchPoint, gain: Omit<GainExplained, 'lines'>): string[] {
  const times = (factor: number) => `${factor.toFixed(2)}x`;
  const [first, second] = gain.tokensPerRequest;
  return [
    `${before.name} → ${after.name}: ${times(gain.runningFactor)} running (${before.running} → ${after.running}), ${times(gain.tokensPerSecondFactor)} tok/s.`,
    `${times(gain.dtypeFactor)} is the KV type: ${formatCount(before.bytesPerToken)} → ${formatCount(after.bytesPerToken)} bytes per token.`,
    `${times(gain.largerPoolFactor)} is a larger pool: more bytes, at any type.`,
    `${times(gain.confoundedFactor)} is confounded: the pool has ${formatCount(first)} tokens for each running request before and ${formatCount(second)} after, so lengths, age of the requests or admission differed too.`,
    ...(gain.isClientLimited
      ? [
          `The later point is client-limited: queue ${after.queued} at the client's own ${after.inFlight}. What its pool could hold was not seen.`,
        ]
      : []),
  ];
}
