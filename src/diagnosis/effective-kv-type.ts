/**
 * Which type the KV cache of a running server really has, from all that it gives away. Pure.
 * Engines turn `auto`, and sometimes even an explicit type, into FP8 without a word, so: bytes per token are measured and win over every
 * name; a line of the log wins over the server's account of itself; `auto` is no answer.
 * Promises: what nothing proves is `unknown`; sources that contradict each other are named.
 */
import { canonicalType, countBits, isKnown } from '../base/element-type.ts';
import { countTokenBytes } from '../capacity/bytes-per-token.ts';
import type { EngineLaunch } from '../capacity/engine-launch.ts';
import type { ModelShape } from '../capacity/model-shape.ts';
import type { ServerFacts } from '../engine/dialect.ts';
import type { LogFacts } from './log-facts.ts';

export interface KvTypeEvidence {
  readonly log?: LogFacts | undefined;
  readonly server?: ServerFacts | undefined;
  /** What the model stores and how the launch spreads it; without it bytes per token tell nothing. */
  readonly plan?: { readonly shape: ModelShape; readonly launch: EngineLaunch } | undefined;
}

export interface EffectiveKvType {
  /** `bf16`, `fp8_e4m3`; `fp8` where only its size is known; `unknown`. */
  readonly type: string;
  /** Bits per element, scales not counted where the pool keeps none; undefined = unknown. */
  readonly bits: number | undefined;
  /** Which source the type is from. */
  readonly how: 'log-line' | 'bytes-per-token' | 'server-info' | 'unknown';
  /** The evidence, with its numbers. */
  readonly because: string;
  /** Sources that say something else. */
  readonly contradicts?: string;
}

interface Named {
  readonly how: 'log-line' | 'server-info';
  readonly dtype: string;
  readonly bits: number;
  readonly says: string;
}

interface Measured {
  readonly type: string;
  readonly bits: number;
  readonly says: string;
}

export function findEffectiveKvType(evidence: KvTypeEvidence): EffectiveKvType {
  const named = namedTypes(evidence);
  const measured = measureInLog(evidence) ?? measureInServer(evidence);
  const chosen = measured === undefined ? named[0] : named.find(({ bits }) => isSameSize(bits, measured.bits));
  const bits = measured?.bits ?? chosen?.bits;
  const others = bits === undefined ? [] : named.filter((one) => !isSameSize(one.bits, bits));
  const contradicts = others.length === 0 ? {} : { contradicts: others.map(({ says }) => says).join('; ') };
  const because = [measured?.says, chosen?.says].filter((says) => says !== undefined).join('; ');
  if (chosen !== undefined) {
    return { type: canonicalType(chosen.dtype), bits: chosen.bits, how: chosen.how, because, ...contradicts };
  }
  if (measured !== undefined)
    return { type: measured.type, bits: measured.bits, how: 'bytes-per-token', because, ...contradicts };
  return {
    type: 'unknown',
    bits: undefined,
    how: 'unknown',
    because: 'neither the log nor the server says it, and no pool of known size was met',
  };
}

/** 8 and the 8.5 of a block type are one size; 8 and 4.5 are not. */
function isSameSize(one: number, other: number): boolean {
  return Math.abs(one - other) <= 0.5;
}

/** Every name that is given, the most reliable first. */
function namedTypes({ log, server }: KvTypeEvidence): Named[] {
  const all: readonly (readonly [Named['how'], string | undefined, string])[] = [
    ['log-line', log?.kvCacheDtype, 'the log says'],
    ['log-line', log?.kvTypeHint, 'a line of the log gives away'],
    ['server-info', server?.kvCacheDtype, 'the server says of itself'],
    ['log-line', log?.arguments['kv_cache_dtype'], 'the flags in the log ask for'],
  ];
  return all.flatMap(([how, dtype, words]) => {
    const bits = dtype === undefined || !isKnown(dtype) ? undefined : countBits(dtype);
    return dtype === undefined || bits === undefined ? [] : [{ how, dtype, bits, says: `${words} ${dtype.slice(0, 40)}` }];
  });
}

/** Engines print sizes with two decimals; keys and values have a figure each. */
const ROUNDING_GIB = 0.005;

function measureInLog({ log, plan }: KvTypeEvidence): Measured | undefined {
  const tokens = log?.allocatedTokens ?? log?.poolTokens ?? 0;
  if (log?.poolGiB === undefined || tokens === 0 || plan === undefined) return undefined;
  const launch = asLogged(plan.launch, log);
  // vLLM sizes layers of several kinds with shared blocks: its tokens and its bytes are not of one group.
  const isMixed = plan.shape.caches.some((group) => group.kind === 'state' || (group.kind === 'heads' && group.window > 0));
  if (launch.engine === 'vllm' && isMixed) return undefined;
  const figures = plan.shape.caches.some(({ kind }) => kind === 'heads') && launch.engine === 'sglang' ? 2 : 1;
  // SGLang keeps one page more than it counts; vLLM counts the positions of all context ranks.
  const slots = launch.engine === 'sglang' ? tokens + launch.pageTokens : tokens / launch.dcp;
  const bytesOf = (gib: number) => (gib * 2 ** 30) / slots;
  const [low, high] = [bytesOf(log.poolGiB - figures * ROUNDING_GIB), bytesOf(log.poolGiB + figures * ROUNDING_GIB)];
  return recognise({ low, high }, { ...plan, launch }, `${log.poolGiB.toFixed(2)} GiB for ${tokens} tokens`);
}

function measureInServer({ server, plan }: KvTypeEvidence): Measured | undefined {
  if (server === undefined || server.kvBytesPerToken <= 0 || plan === undefined) return undefined;
  const bytes = server.kvBytesPerToken;
  return recognise({ low: bytes, high: bytes }, plan, 'by the server’s memory usage');
}

/** A server that was started with other ranks than the plan keeps another number of KV heads on each. */
function asLogged(launch: EngineLaunch, { arguments: given, engine }: LogFacts): EngineLaunch {
  const count = (name: string) => (/^\d+$/.test(given[name] ?? '') ? Number(given[name]) : undefined);
  const tp = count('tp_size') ?? count('tensor_parallel_size');
  const pp = count('pp_size') ?? count('pipeline_parallel_size') ?? launch.pp;
  if (tp === undefined || tp === 0 || pp === 0 || (engine !== undefined && engine !== launch.engine)) return launch;
  const isDpAttention =
    given['enable_dp_attention'] === undefined ? launch.isDpAttention : given['enable_dp_attention'] === 'True';
  const dp = count('dp_size') ?? launch.dp;
  const attentionTp = isDpAttention && dp > 0 ? Math.max(1, Math.floor(tp / dp)) : tp;
  return { ...launch, tp, pp, attentionTp, pageTokens: count('page_size') ?? launch.pageTokens };
}

/** What a KV cache can be made of. Block types keep one byte of scale for 16 elements. */
const CANDIDATES = [
  { type: 'bf16', bits: 16, scaleBytesPerElement: 0 },
  { type: 'fp8', bits: 8, scaleBytesPerElement: 0 },
  { type: 'fp4', bits: 4, scaleBytesPerElement: 1 / 16 },
] as const;

/** Formulas and logs agree to 1 % (field data); two neighbouring types lie 1.6 times or more apart. */
const TOLERANCE = 1.1;

function recognise(
  { low, high }: { readonly low: number; readonly high: number },
  { shape, launch }: NonNullable<KvTypeEvidence['plan']>,
  from: string,
): Measured | undefined {
  const expected = CANDIDATES.map((candidate) => ({
    ...candidate,
    bytes: countTokenBytes(shape, { ...launch, kvType: { ...launch.kvType, ...candidate } }).bytes,
  }));
  const fitting = expected.filter(({ bytes }) => bytes >= low / TOLERANCE && bytes <= high * TOLERANCE);
  const [only] = fitting;
  if (fitting.length !== 1 || only === undefined) return undefined;
  const measured = Math.round((low + high) / 2);
  return {
    type: nameOf(only, launch),
    bits: only.bits,
    says: `${measured} B a token (${from}), and ${Math.round(only.bytes)} B are ${only.bits} bits`,
  };
}

/** Sixteen bits are those that the model computes in. */
function nameOf({ type, bits }: { readonly type: string; readonly bits: number }, { kvType }: EngineLaunch): string {
  return bits === 16 && kvType.bits === 16 ? canonicalType(kvType.type) : type;
}
