/** Family: does a line have exactly the keys and types of a record? Pure. Nothing else is looked at where it has not. */
import { ROLES } from '../../base/conversation.ts';
import { FINISHES, RECORD_FLAGS, type TrainingRecord } from '../../shard/record.ts';

type Test = (value: unknown) => boolean;

const text: Test = (value) => typeof value === 'string';
const truth: Test = (value) => typeof value === 'boolean';
const number: Test = (value) => typeof value === 'number' && Number.isFinite(value);
const count: Test = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
/** Only that they are numbers: which numbers are ids is another family's question. */
const numbers: Test = (value) => Array.isArray(value) && value.every((entry) => typeof entry === 'number');
const oneOf =
  (allowed: readonly unknown[]): Test =>
  (value) =>
    allowed.includes(value);
const listOf =
  (test: Test): Test =>
  (value) =>
    Array.isArray(value) && value.every(test);
/** Exactly these keys: none missing, none more, none null. */
const exactly =
  (keys: Readonly<Record<string, Test>>): Test =>
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    const entries = Object.entries(value);
    return entries.length === Object.keys(keys).length && entries.every(([key, entry]) => keys[key]?.(entry) === true);
  };

const turn = exactly({
  continues: count,
  promptIds: numbers,
  outputIds: numbers,
  endsWithStopId: truth,
  text,
  reasoning: text,
  toolCalls: listOf(exactly({ id: text, name: text, arguments: text })),
  finish: oneOf(FINISHES),
  usage: exactly({ prompt: count, completion: count, cached: count }),
  seed: count,
  server: text,
});

const record = exactly({
  v: oneOf([1]),
  id: (value) => text(value) && value !== '',
  partition: (value) => text(value) && value !== '',
  messages: listOf(exactly({ role: oneOf(ROLES), content: text })),
  tools: (value) => Array.isArray(value) && value.length === 0,
  turns: (value) => listOf(turn)(value) && (value as readonly unknown[]).length > 0,
  exact: truth,
  inexactBecause: text,
  flags: listOf(oneOf(RECORD_FLAGS)),
  sampling: exactly({ temperature: number, topP: number, topK: number, maxTokens: number, seed: number }),
  provenance: exactly({
    model: text,
    revision: text,
    engine: text,
    engineVersion: text,
    weights: text,
    kvCacheDtype: text,
    templateHash: text,
    launch: count,
    aerie: text,
  }),
});

export function isRecordShape(value: unknown): value is TrainingRecord {
  return record(value);
}
