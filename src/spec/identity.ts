/**
 * What must not change in a run that has begun, because its records would no longer be of one kind. Pure.
 * A run keeps the `identityOf` its first start in the ledger; each later start compares with it.
 * Promises: servers, ports, flags, requests in flight, a new partition, a partition left out (its records stay), a higher
 * budget or limit are never differences.
 */
import { dirname, isAbsolute, relative } from 'node:path';
import { isKnown, isSameType } from '../base/element-type.ts';
import type { Facts } from '../base/events.ts';
import { formatCount } from '../base/units.ts';
import type { AskSettings, RunSpec } from './run.ts';

export interface Difference {
  readonly what: string;
  readonly before: string;
  readonly now: string;
}

/** Keys are those of the run file: `sampling.top-p`, `partitions.B1.from`. */
export function identityOf(spec: RunSpec): Facts {
  const { sampling } = spec;
  const facts: Record<string, string | number> = {
    model: placeOf(spec, spec.model),
    'sampling.temperature': sampling.temperature,
    'sampling.top-p': sampling.topP,
    'sampling.top-k': sampling.topK,
    'sampling.max-tokens': sampling.maxTokens,
    'sampling.seed': sampling.seed,
    'sampling.stop': renderCanonical(sampling.stop),
    'sampling.temperature-mixture': renderCanonical(spec.temperatureMixture),
    'sampling.chat-template-kwargs': renderCanonical(spec.templateKwargs),
    'sampling.extra-body': renderCanonical(spec.extraBody),
  };
  for (const { name, from, columns, budget, limit, turns, truncated, continuations, ask } of spec.partitions) {
    facts[`partitions.${name}.from`] = from.map((path) => placeOf(spec, path)).join(', ');
    facts[`partitions.${name}.columns`] = renderCanonical(columns);
    facts[`partitions.${name}.budget`] = budget;
    facts[`partitions.${name}.limit`] = limit;
    facts[`partitions.${name}.turns`] = turns;
    facts[`partitions.${name}.truncated`] = truncated;
    if (truncated === 'continue') facts[`partitions.${name}.continuations`] = continuations;
    facts[`partitions.${name}.sampling`] = renderOwn(spec, ask);
  }
  return facts;
}

/** What a partition asks otherwise than its run, in the keys of the record: a change of the run's own is a difference already. */
function renderOwn(run: AskSettings, { sampling, ...rest }: AskSettings): string {
  const flat = (settings: AskSettings): Record<string, unknown> => ({ ...settings.sampling, ...settings });
  const own = Object.entries({ ...sampling, ...rest }).filter(([key, value]) => {
    return renderCanonical(value) !== renderCanonical(flat(run)[key]);
  });
  return own.length === 0 ? 'as the run' : renderCanonical(Object.fromEntries(own));
}

/** Relative to the run file where it lies below its folder: a project that was moved as a whole is still the same. */
function placeOf(spec: RunSpec, path: string): string {
  if (!isAbsolute(path)) return path;
  const below = relative(dirname(spec.file), path);
  return below.startsWith('..') || isAbsolute(below) ? path : below.replaceAll('\\', '/');
}

export function identityDifferences(before: Facts, now: Facts): Difference[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  return keys.flatMap((key) => {
    const difference = key.startsWith('partitions.')
      ? comparePartition(key, before[key], now[key])
      : compareFact(key, before[key], now[key]);
    return difference === undefined ? [] : [difference];
  });
}

type MaybeFact = Facts[string] | undefined;

function compareFact(key: string, before: MaybeFact, now: MaybeFact): Difference | undefined {
  return before === now ? undefined : { what: key, before: String(before ?? 'not set'), now: String(now ?? 'not set') };
}

function comparePartition(key: string, before: MaybeFact, now: MaybeFact): Difference | undefined {
  if (before === undefined || now === undefined) return undefined; // a new partition, or one left out
  if (!/\.(budget|limit)$/.test(key)) return compareFact(key, before, now);
  const [had, has] = [Number(before), Number(now)];
  if (has === 0 || (had !== 0 && has >= had)) return undefined; // 0 = no budget, all prompts: the highest there is
  const unit = key.endsWith('.budget') ? 'tokens' : 'prompts';
  const none = key.endsWith('.budget') ? 'no budget' : 'all prompts';
  const what = `${key} (may be raised, never lowered)`;
  return { what, before: had === 0 ? none : `${formatCount(had)} ${unit}`, now: `${formatCount(has)} ${unit}` };
}

/** What the live server says about itself that makes its records one kind. '' and `unknown` = it does not say. */
export interface LaunchIdentity {
  readonly model: string;
  readonly revision: string;
  readonly weights: string;
  readonly kvCacheDtype: string;
  readonly templateHash: string;
}

const LAUNCH_WORDS: Readonly<Record<keyof LaunchIdentity, string>> = {
  model: 'model of the server',
  revision: 'revision of the model',
  weights: 'weight format',
  kvCacheDtype: 'type of the KV cache',
  templateHash: 'chat template (its hash)',
};

/** Compares only what both have said: silence is no change. Two spellings of one number type are no change either. */
export function launchDifferences(before: LaunchIdentity, now: LaunchIdentity): Difference[] {
  return (Object.keys(LAUNCH_WORDS) as (keyof LaunchIdentity)[]).flatMap((key) => {
    const [had, has] = [before[key], now[key]];
    if (!isKnown(had) || !isKnown(has) || had === has) return [];
    if ((key === 'weights' || key === 'kvCacheDtype') && isSameType(had, has)) return [];
    return [{ what: LAUNCH_WORDS[key], before: had, now: has }];
  });
}

/** JSON with sorted keys: the same text for the same values, in whatever order they were written. */
export function renderCanonical(value: unknown): string {
  return JSON.stringify(value, (_key, below: unknown) => {
    if (typeof below !== 'object' || below === null || Array.isArray(below)) return below;
    return Object.fromEntries(Object.entries(below).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
