/**
 * The acceptance test of a run's records: everything a trainer would trip over later, said now, with counts and examples.
 *
 * Promises: every record is looked at; a record has each code at most once, so `count` is in records and `share` is
 * count / records; findings come errors first, then by count. What only the whole run shows (a key that comes twice, a near
 * duplicate) is found of the later record, so that the first can be kept. Memory holds one record, and for each record its
 * key and 0.2 KB to find near duplicates by: about 0.3 GB for a million.
 * It reads only. A record that is wrong is a finding, never an exception; what `records` throws passes through.
 */

import { formatCount } from '../base/units.ts';
import { findRecordProblem } from '../shard/parse-record.ts';
import type { TrainingRecord } from '../shard/record.ts';
import type { Decoder } from '../tokens/decoder.ts';
import type { BenchmarkPrompts } from './findings/benchmark-overlap.ts';
import { type CheckFacts, FINDING_CODES, FINDINGS, type FindingCode, type Severity } from './findings/codes.ts';
import { type AnswerDecoder, countDecodeDifferences, type DecodeCount, hasSpecialInside } from './findings/decode-findings.ts';
import { type Drift, findDrift, type Renderer } from './findings/drift-findings.ts';
import { DEFAULT_MAX_LENGTH, findInLengths } from './findings/length-findings.ts';
import { openNearDuplicates } from './findings/near-duplicates.ts';
import { findInTexts } from './findings/text-findings.ts';
import { findInTokens, isLooping } from './findings/token-findings.ts';
import { findInTurns } from './findings/turn-findings.ts';

/** Stands in `records` for a record whose bytes could not be read back. */
export interface UnreadableRecord {
  readonly partition: string;
  readonly id: string;
  /** What is wrong with the bytes. */
  readonly unreadable: string;
}

/** The run's tokenizer: decoding always, rendering and encoding where it has a chat template. */
export type CheckDecoder = AnswerDecoder & Partial<Renderer & Pick<Decoder, 'specialTexts'>>;

export interface CheckRequest extends CheckFacts {
  /** What claims to be `TrainingRecord`s, parsed and not yet trusted (the shape is checked here), and `UnreadableRecord`s. */
  readonly records: AsyncIterable<unknown>;
  /** Without it, ids are not compared with texts, and nothing is rendered anew. */
  readonly decoder?: CheckDecoder;
  /** Prompts that later measurements are made with. */
  readonly benchmarks?: BenchmarkPrompts;
  /** How the run was named, for `next`. */
  readonly run: string;
  readonly signal?: AbortSignal;
}

export interface Finding {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly sentence: string;
  /** Records that have it. */
  readonly count: number;
  /** count / records. */
  readonly share: number;
  /** `partition/id`, at most ten. */
  readonly exampleIds: readonly string[];
  readonly next: string;
}

export interface CheckResult {
  readonly records: number;
  readonly findings: readonly Finding[];
  /** Token rows whose conversation was rendered and encoded anew, and those that gave other ids; both 0 without a chat template. */
  readonly drift: DecodeCount;
  /** Answers that were decoded with the model's tokenizer, and those whose ids are not their text; both 0 without a decoder. */
  readonly decoded: DecodeCount;
}

const MOST_EXAMPLES = 10; // enough to see a pattern; `--json` readers asked for no more

export async function checkRun(request: CheckRequest): Promise<CheckResult> {
  const tally = new Map<FindingCode, { count: number; exampleIds: string[] }>();
  const drift = { rows: 0, differing: 0 };
  const decoded = { rows: 0, differing: 0 };
  let records = 0;
  for await (const { key, codes, ...counts } of examineAll(request)) {
    records += 1;
    add(drift, counts.drift);
    add(decoded, counts.decoded);
    for (const code of codes) {
      const entry = tally.get(code) ?? { count: 0, exampleIds: [] };
      entry.count += 1;
      if (entry.exampleIds.length < MOST_EXAMPLES) entry.exampleIds.push(key);
      tally.set(code, entry);
    }
  }
  const findings = FINDING_CODES.flatMap((code) => {
    const entry = tally.get(code);
    return entry === undefined ? [] : [finding(code, { ...entry, records }, request)];
  });
  findings.sort((a, b) => rank(a) - rank(b) || b.count - a.count);
  return { records, findings, drift, decoded };
}

export function hasErrors(result: CheckResult): boolean {
  return result.findings.some((entry) => entry.severity === 'error');
}

/** What one record shows by itself; what only the whole run shows (a key that comes twice) takes `findIds`. */
export function findingsOf(record: TrainingRecord, facts: CheckFacts, decoder?: CheckDecoder): Set<FindingCode> {
  return examine(record, decoder === undefined ? facts : { ...facts, decoder }).codes;
}

/** The keys (`partition/id`) of the records that have the code, or any of the codes; what the whole run shows included. */
export async function findIds(code: FindingCode | readonly FindingCode[], request: CheckRequest): Promise<Set<string>> {
  const wanted = typeof code === 'string' ? [code] : code;
  const keys = new Set<string>();
  for await (const { key, codes } of examineAll(request)) if (wanted.some((one) => codes.has(one))) keys.add(key);
  return keys;
}

interface Examined {
  readonly codes: Set<FindingCode>;
  readonly drift: DecodeCount;
  readonly decoded: DecodeCount;
}

/** Every record once, in order. */
async function* examineAll(request: CheckRequest): AsyncGenerator<Examined & { readonly key: string }> {
  const keys = new Set<string>();
  const nearDuplicates = openNearDuplicates();
  let place = 0;
  for await (const value of request.records) {
    request.signal?.throwIfAborted();
    place += 1;
    const examined = examine(value, request);
    const { codes } = examined;
    const key = keyOf(value, place);
    if (keys.has(key)) codes.add('duplicate-key');
    keys.add(key);
    // What cannot be read or is there twice is no text to compare others with.
    if (isRecord(value) && !codes.has('duplicate-key')) {
      if (nearDuplicates.isRepeated(textOf(value))) codes.add('near-duplicate');
      if (overlaps(value, request.benchmarks)) codes.add('benchmark-overlap');
    }
    yield { key, ...examined };
  }
}

/** Everything that was said. */
function textOf({ messages, turns }: TrainingRecord): string {
  return [...messages.map(({ content }) => content), ...turns.flatMap(({ reasoning, text }) => [reasoning, text])].join('\n');
}

function overlaps({ messages }: TrainingRecord, benchmarks: BenchmarkPrompts | undefined): boolean {
  return benchmarks !== undefined && messages.some(({ role, content }) => role === 'user' && benchmarks.overlaps(content));
}

function add(sum: { rows: number; differing: number }, { rows, differing }: DecodeCount): void {
  sum.rows += rows;
  sum.differing += differing;
}

const NONE: DecodeCount = { rows: 0, differing: 0 };
const NO_DRIFT: Drift = { ...NONE, codes: [] };

type Facts = CheckFacts & Pick<CheckRequest, 'decoder'>;

function examine(value: unknown, facts: Facts): Examined {
  if (isUnreadable(value)) return { codes: new Set(['record-unreadable']), drift: NONE, decoded: NONE };
  if (!isRecord(value)) return { codes: new Set(['record-shape']), drift: NONE, decoded: NONE };
  const { decoder } = facts;
  const codes = new Set<FindingCode>([
    ...findInTokens(value, facts),
    ...findInLengths(value, facts),
    ...findInTurns(value),
    ...findInTexts(value, decoder?.specialTexts),
  ]);
  if (isLooping(value)) codes.add('repetition-loop');
  if (decoder === undefined || codes.has('id-out-of-range')) return { codes, drift: NONE, decoded: NONE };
  const decoded = countDecodeDifferences(value, facts, decoder);
  if (decoded.differing > 0) codes.add('text-differs');
  if (hasSpecialInside(value, facts, decoder)) codes.add('special-token');
  // A conversation whose turns do not fit its messages has no rendering to compare with.
  const drift = codes.has('message-order') ? NO_DRIFT : driftOf(value, decoder, facts.templateKwargs?.[value.partition]);
  for (const code of drift.codes) codes.add(code);
  return { codes, drift, decoded };
}

function driftOf(
  record: TrainingRecord,
  { encode, renderChat }: CheckDecoder,
  kwargs?: Readonly<Record<string, unknown>>,
): Drift {
  return encode === undefined ? NO_DRIFT : findDrift(record, { encode, renderChat }, kwargs);
}

function isUnreadable(value: unknown): value is UnreadableRecord {
  return typeof value === 'object' && value !== null && 'unreadable' in value;
}

/** A line without a usable key is named by its place. */
function keyOf(value: unknown, place: number): string {
  const { partition, id } = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  return typeof partition === 'string' && typeof id === 'string' ? `${partition}/${id}` : `record ${place}`;
}

function finding(
  code: FindingCode,
  seen: { readonly count: number; readonly exampleIds: readonly string[]; readonly records: number },
  { run, maxLength = DEFAULT_MAX_LENGTH }: Pick<CheckRequest, 'run' | 'maxLength'>,
): Finding {
  const { severity, sentence, next } = FINDINGS[code];
  const { count, exampleIds, records } = seen;
  return {
    ...{ code, severity, count, share: count / records, exampleIds },
    sentence: sentence.replaceAll('LENGTH', formatCount(maxLength)),
    next: next.replaceAll('LENGTH', String(maxLength)).replaceAll('RUN', run),
  };
}

function rank(entry: Finding): number {
  return entry.severity === 'error' ? 0 : 1;
}

function isRecord(value: unknown): value is TrainingRecord {
  if (findRecordProblem(value) !== undefined) return false;
  const { id, partition, turns } = value as TrainingRecord;
  return id !== '' && partition !== '' && turns.length > 0;
}
