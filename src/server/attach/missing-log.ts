/**
 * What it costs that the log of a server is not there, or does not say everything: one sentence for each thing that is not known or cannot be done. Pure.
 * Promises: nothing is said to be missing that the server tells by itself; a rule that cannot be checked is named, with what follows.
 */
import { isKnown } from '../../base/element-type.ts';
import type { EffectiveKvType } from '../../diagnosis/effective-kv-type.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import { describeRule } from '../../spec/policy.ts';
import type { PolicyLimits, PolicyRule } from '../../spec/run.ts';

export interface KnownWithout {
  /** undefined: there is none. */
  readonly log: LogFacts | undefined;
  readonly kvType: EffectiveKvType;
  /** 0 = unknown. */
  readonly poolTokens: number;
  readonly policy: readonly PolicyRule[];
}

export function costsOfMissingLog({ log, kvType, poolTokens, policy }: KnownWithout): string[] {
  return [
    ...costOfKvType(kvType, log, policy),
    ...(poolTokens === 0 ? [`What its KV pool holds is not known${rulesAbout(policy, ['poolTokens'])}.`] : []),
    ...(log?.freeAfterGraphsGiB === undefined
      ? [`What is left of its GPU memory after graph capture is not known${rulesAbout(policy, ['freeGiB'])}.`]
      : []),
    ...(log === undefined
      ? [
          'Should it end, nothing says why, and there is no advice for the next start.',
          'Whether it hangs is told by its health and by its tokens alone.',
        ]
      : []),
  ];
}

function costOfKvType(kvType: EffectiveKvType, log: LogFacts | undefined, policy: readonly PolicyRule[]): string[] {
  const [rule] = policy.filter(isAboutKvCache);
  if (!isKnown(kvType.type)) {
    const so =
      rule === undefined ? 'records will say so' : `the rule ${describeRule(rule)} cannot be checked, and nothing is asked of it`;
    return [`The effective type of its KV cache is not known: ${so}.`];
  }
  if (log !== undefined || kvType.how !== 'server-info') return [];
  const believed = rule === undefined ? 'it is believed' : `the rule ${describeRule(rule)} is checked on that`;
  return [
    `The type of its KV cache is what the server says of itself (${kvType.type}); ${believed}. An engine that changed it says so in its log alone.`,
  ];
}

function isAboutKvCache({ forbid, require: required, min, max }: PolicyRule): boolean {
  return [forbid?.kvCache, required?.kvCache, min?.kvCacheBits, max?.kvCacheBits].some((part) => part !== undefined);
}

/** Such a bound is shown as not known, and does not keep the server out (docs/decisions/0043). */
function rulesAbout(policy: readonly PolicyRule[], names: readonly (keyof PolicyLimits)[]): string {
  const rules = policy.filter(({ min, max }) => names.some((name) => min?.[name] !== undefined || max?.[name] !== undefined));
  return rules.length === 0 ? '' : `: ${rules.map(describeRule).join('; ')} is not checked`;
}
