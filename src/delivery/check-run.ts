/**
 * The acceptance test of a run's records: everything a trainer would trip over later, said now, with counts and examples.
 *
 * Promises: every record is looked at; a record has each code at most once, so `count` is in records and `share` is
 * count / records; findings come errors first, then by count. Memory holds one record and the set of keys.
 * It reads only. A record that is wrong is a finding, never an exception; what `records` throws passes through.
 */
import { type AnswerDecoder, countDecodeDifferences, type DecodeCount, hasSpecialInside } from './findings/decode-findings.ts';
import { type CheckFacts, FINDING_CODES, type FindingCode, FINDINGS, type Severity } from './findings/codes.ts';
import { findRecordProblem } from '../shard/parse-record.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { findInTexts } from './findings/text-findings.ts';
import { findInTokens } from './findings/token-findings.ts';
import { findInTurns } from './findings/turn-findings.ts';

/** Stands in `records` for a record whose bytes could not be read back. */
export interface UnreadableRecord {
  readonly partition: string;
  readonly id: string;
  /** What is wrong with the bytes. */
  readonly unreadable: string;
}

export interface CheckRequest extends CheckFacts {
  /** What claims to be `TrainingRecord`s, parsed and not yet trusted (the shape is checked here), and `UnreadableRecord`s. */
  readonly records: AsyncIterable<unknown>;
  /** Without it, ids are not compared with texts. */
  readonly decoder?: AnswerDecoder;
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
  /**
   * Answers that were decoded with the model's tokenizer, and those whose ids are not their text; both 0 without a decoder.
   * Rendering the conversation and encoding it anew, which trainers that take text do, is not compared in this version.
   */
  readonly drift: DecodeCount;
}

const MOST_EXAMPLES = 10; // enough to see a pattern; `--json` readers asked for no more

export async function checkRun(request: CheckRequest): Promise<CheckResult> {
  const tally = new Map<FindingCode, { count: number; exampleIds: string[] }>();
  let records = 0;
  let rows = 0;
  let differing = 0;
  for await (const { key, codes, drift } of examineAll(request)) {
    records += 1;
    rows += drift.rows;
    differing += drift.differing;
    for (const code of codes) {
      const entry = tally.get(code) ?? { count: 0, exampleIds: [] };
      entry.count += 1;
      if (entry.exampleIds.length < MOST_EXAMPLES) entry.exampleIds.push(key);
      tally.set(code, entry);
    }
  }
  const findings = FINDING_CODES.flatMap((code) => {
    const entry = tally.get(code);
    return entry === undefined ? [] : [finding(code, { ...entry, records, run: request.run })];
  });
  findings.sort((a, b) => rank(a) - rank(b) || b.count - a.count);
  return { records, findings, drift: { rows, differing } };
}

export function hasErrors(result: CheckResult): boolean {
  return result.findings.some((entry) => entry.severity === 'error');
}

/** What one record shows by itself; what only the whole run shows (a key that comes twice) takes `findIds`. */
export function findingsOf(record: TrainingRecord, facts: CheckFacts, decoder?: AnswerDecoder): Set<FindingCode> {
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
}

/** Every record once, in order. What only the whole run shows is found of the later record, so that the first can be kept. */
async function* examineAll(request: CheckRequest): AsyncGenerator<Examined & { readonly key: string }> {
  const keys = new Set<string>();
  let place = 0;
  for await (const value of request.records) {
    request.signal?.throwIfAborted();
    place += 1;
    const { codes, drift } = examine(value, request);
    const key = keyOf(value, place);
    if (keys.has(key)) codes.add('duplicate-key');
    keys.add(key);
    yield { key, codes, drift };
  }
}

type Facts = CheckFacts & Pick<CheckRequest, 'decoder'>;

function examine(value: unknown, request: Facts): Examined {
  const drift: DecodeCount = { rows: 0, differing: 0 };
  if (isUnreadable(value)) return { codes: new Set(['record-unreadable']), drift };
  if (!isRecord(value)) return { codes: new Set(['record-shape']), drift };
  const codes = new Set<FindingCode>([...findInTokens(value, request), ...findInTurns(value), ...findInTexts(value)]);
  if (request.decoder === undefined || codes.has('id-out-of-range')) return { codes, drift };
  const decoded = countDecodeDifferences(value, request, request.decoder);
  if (decoded.differing > 0) codes.add('text-differs');
  if (hasSpecialInside(value, request, request.decoder)) codes.add('special-token');
  return { codes, drift: decoded };
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
  seen: { readonly count: number; readonly exampleIds: readonly string[]; readonly records: number; readonly run: string },
): Finding {
  const { severity, sentence, next } = FINDINGS[code];
  const { count, exampleIds, records, run } = seen;
  return { code, severity, sentence, count, share: count / records, exampleIds, next: next.replaceAll('RUN', run) };
}

function rank(entry: Finding): number {
  return entry.severity === 'error' ? 0 : 1;
}

function isRecord(value: unknown): value is TrainingRecord {
  if (findRecordProblem(value) !== undefined) return false;
  const { id, partition, turns } = value as TrainingRecord;
  return id !== '' && partition !== '' && turns.length > 0;
}
