/**
 * Does a launch keep the rules of the run file? Pure; asked before a launch about its flags and after it about what the
 * server really does.
 * Promises: a rule is matched on what a thing is (bits per element, size), never on how it is spelled; what nobody can tell is
 * not kept, and `known: false` says that it is not proven broken either.
 */
import { countBits, isKnown, isSameType } from '../base/element-type.ts';
import type { PolicyLimits, PolicyRule, ServerSpec } from './run.ts';

/** What a launch is, resolved: from a plan, or from what a server says. What is left out is not known. */
export interface LaunchClass {
  readonly kvCacheDtype: string;
  /** Bits per element of most of the weights, scales counted. */
  readonly weightBits?: number;
  /** The weights are in the format that the checkpoint was published in. */
  readonly areWeightsAsPublished?: boolean;
  readonly figures?: Readonly<Partial<Record<keyof PolicyLimits, number>>>;
}

export interface PolicyCheck {
  readonly rule: PolicyRule;
  /** False also where it is not known. */
  readonly kept: boolean;
  readonly known: boolean;
  readonly because: string;
}

type Judgement = Omit<PolicyCheck, 'rule'>;

const FEWEST_BITS = { 'below-16-bit': 16, 'below-8-bit': 8 } as const;

export function checkPolicy(rules: readonly PolicyRule[], launch: LaunchClass): PolicyCheck[] {
  return rules.map((rule) => ({ rule, ...judgeRule(rule, launch) }));
}

/** Proven broken, or about the numerics and not to be told: then nothing is asked of the server (docs/decisions/0007). */
export function isBroken({ rule, kept, known }: PolicyCheck): boolean {
  const isAboutNumerics = rule.forbid !== undefined || rule.require !== undefined || hasBits(rule.min) || hasBits(rule.max);
  return known ? !kept : isAboutNumerics;
}

function hasBits(limits: PolicyLimits | undefined): boolean {
  return limits?.kvCacheBits !== undefined || limits?.weightBits !== undefined;
}

/** Every part of a rule must hold; the first that does not says why, and one that nobody can tell goes last. */
function judgeRule(rule: PolicyRule, launch: LaunchClass): Judgement {
  const parts = [...judgeForbidden(rule, launch), ...judgeRequired(rule, launch), ...judgeLimits(rule, launch)];
  const [first] = parts;
  return parts.find(({ kept, known }) => !kept && known) ?? parts.find(({ kept }) => !kept) ?? first ?? NOTHING_ASKED;
}

const NOTHING_ASKED: Judgement = { kept: true, known: true, because: 'the rule asks for nothing' };

function judgeForbidden({ forbid }: PolicyRule, launch: LaunchClass): Judgement[] {
  const judged: Judgement[] = [];
  if (forbid?.kvCache !== undefined) judged.push(judgeKvCache(launch.kvCacheDtype, FEWEST_BITS[forbid.kvCache]));
  if (forbid?.weights === 'requantised') judged.push(judgePublished(launch));
  else if (forbid?.weights !== undefined) judged.push(judgeWeightBits(launch, FEWEST_BITS[forbid.weights]));
  return judged;
}

function judgeRequired({ require: required }: PolicyRule, launch: LaunchClass): Judgement[] {
  const judged: Judgement[] = [];
  if (required?.kvCache !== undefined) judged.push(judgeKvType(launch.kvCacheDtype, required.kvCache));
  if (required?.weights !== undefined) judged.push(judgePublished(launch));
  return judged;
}

function judgeKvCache(dtype: string, fewest: number): Judgement {
  if (!isKnown(dtype)) return { kept: false, known: false, because: 'nothing says which type the KV cache has' };
  const bits = countBits(dtype);
  if (bits === undefined)
    return { kept: false, known: false, because: `the KV cache is ${dtype}, which does not tell its bits per element` };
  const because = `the KV cache is ${dtype}, ${bits} bits per element; the rule asks for ${fewest} or more`;
  return { kept: bits >= fewest, known: true, because };
}

function judgeKvType(dtype: string, wanted: string): Judgement {
  if (!isKnown(dtype) || countBits(dtype) === undefined)
    return { kept: false, known: false, because: `nothing says which type the KV cache has; the rule asks for ${wanted}` };
  return { kept: isSameType(dtype, wanted), known: true, because: `the KV cache is ${dtype}; the rule asks for ${wanted}` };
}

function judgePublished({ areWeightsAsPublished }: LaunchClass): Judgement {
  if (areWeightsAsPublished === undefined)
    return { kept: false, known: false, because: 'nothing says whether the weights are as published' };
  const are = areWeightsAsPublished ? 'as published' : 'quantised anew';
  return { kept: areWeightsAsPublished, known: true, because: `the weights are ${are}; the rule asks for the published ones` };
}

function judgeWeightBits({ weightBits }: LaunchClass, fewest: number): Judgement {
  if (weightBits === undefined) return { kept: false, known: false, because: 'nothing says which format the weights have' };
  const because = `the weights have ${weightBits} bits per element; the rule asks for ${fewest} or more`;
  return { kept: weightBits >= fewest, known: true, because };
}

/** What each figure is called in a sentence. */
const FIGURES: Readonly<Record<keyof PolicyLimits, string>> = {
  kvCacheBits: 'bits per element of the KV cache',
  weightBits: 'bits per element of the weights',
  contextTokens: 'tokens of context',
  poolTokens: 'tokens of KV pool',
  runningRequests: 'running requests',
  memoryFraction: 'memory fraction',
  freeGiB: 'GiB left after graph capture',
};

function judgeLimits({ min, max }: PolicyRule, launch: LaunchClass): Judgement[] {
  const figures = { ...launch.figures, ...bitsOf(launch) };
  const judge = (limits: PolicyLimits | undefined, isMin: boolean) =>
    Object.entries(limits ?? {}).map(([name, limit]) => judgeFigure(name as keyof PolicyLimits, Number(limit), figures, isMin));
  return [...judge(min, true), ...judge(max, false)];
}

function bitsOf({ kvCacheDtype, weightBits }: LaunchClass): LaunchClass['figures'] {
  const bits = isKnown(kvCacheDtype) ? countBits(kvCacheDtype) : undefined;
  return { ...(bits === undefined ? {} : { kvCacheBits: bits }), ...(weightBits === undefined ? {} : { weightBits }) };
}

function judgeFigure(name: keyof PolicyLimits, limit: number, figures: LaunchClass['figures'], isMin: boolean): Judgement {
  const value = figures?.[name];
  const asked = `the rule asks for ${limit} or ${isMin ? 'more' : 'less'}`;
  if (value === undefined) return { kept: false, known: false, because: `nothing says the ${FIGURES[name]}; ${asked}` };
  const kept = isMin ? value >= limit : value <= limit;
  return { kept, known: true, because: `${FIGURES[name]}: ${Math.round(value * 1000) / 1000}; ${asked}` };
}

/** What a flag touches, as `engine/levers.ts` says. */
export interface LeverTouch {
  readonly effect: 'none' | 'order' | 'numerics' | 'unknown';
  readonly subject: 'kv-cache' | 'weights' | 'attention' | 'model' | 'none';
}

/**
 * May a flag be changed without being asked? Neutral ones may. One that changes the numerics may where a rule is written for what it touches (and the rule
 * is kept); where none is, a person is asked.
 */
export function decideLever(touch: LeverTouch, rules: readonly PolicyRule[]): 'allowed' | 'by-rule' | 'ask' {
  if (touch.effect === 'none' || touch.effect === 'order') return 'allowed';
  return rules.some((rule) => isRuleOf(rule, touch.subject)) ? 'by-rule' : 'ask';
}

function isRuleOf({ forbid, require: required, min, max }: PolicyRule, subject: LeverTouch['subject']): boolean {
  if (subject === 'kv-cache')
    return [forbid?.kvCache, required?.kvCache, min?.kvCacheBits, max?.kvCacheBits].some((part) => part !== undefined);
  if (subject === 'weights')
    return [forbid?.weights, required?.weights, min?.weightBits, max?.weightBits].some((part) => part !== undefined);
  return false;
}

/** A rule in the words of the run file, for events and tables: `forbid kv-cache: below-16-bit`. */
export function describeRule({ forbid, require: required, min, max }: PolicyRule): string {
  const words = (verb: string, part: object | undefined) =>
    Object.entries(part ?? {}).map(([name, value]) => `${verb} ${dashed(name)}: ${String(value)}`);
  return [...words('forbid', forbid), ...words('require', required), ...words('min', min), ...words('max', max)].join(', ');
}

const DASHED: Readonly<Record<string, string>> = {
  kvCache: 'kv-cache',
  kvCacheBits: 'kv-cache-bits',
  weightBits: 'weight-bits',
  contextTokens: 'context',
  poolTokens: 'pool',
  runningRequests: 'running-requests',
  memoryFraction: 'memory-fraction',
  freeGiB: 'free-gib',
};

function dashed(name: string): string {
  return DASHED[name] ?? name;
}

/** The KV type that the flags of a server ask for, '' where the server is already there and only it can tell. */
export function findPlannedKvCacheDtype(server: ServerSpec): string {
  if (server.attach !== undefined) return '';
  const written = server.flags['kv-type'];
  return written === undefined ? 'f16' : String(written); // f16 is what the embedded engine takes when not told
}
