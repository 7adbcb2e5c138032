/**
 * A line of a shard → a record, its shape verified: every key there, no other, of the right type. Id arrays are checked
 * by one loop, because they are nearly all of the bytes. Pure.
 * On failure: `ledger.damaged`, naming the first place that is wrong; a line of ours that is not a record is damage.
 */

import { ROLES } from '../base/conversation.ts';
import { AerieError } from '../base/errors.ts';
import { FINISHES, RECORD_FLAGS, type TrainingRecord } from './record.ts';

/** What is wrong with a value at a place, or undefined. */
type Check = (value: unknown, place: string) => string | undefined;

export function parseRecord(line: Buffer | string): TrainingRecord {
  let value: unknown;
  try {
    value = JSON.parse(line.toString());
  } catch (thrown) {
    throw notARecord('it is not JSON', thrown);
  }
  const wrong = findRecordProblem(value);
  if (wrong !== undefined) throw notARecord(wrong);
  return value as TrainingRecord;
}

/** The first place where a value is not a record, or undefined where it is one. For readers that count instead of stopping. */
export function findRecordProblem(value: unknown): string | undefined {
  return RECORD(value, '');
}

const STRING: Check = (value, place) => (typeof value === 'string' ? undefined : `${place} is not a string`);
const BOOLEAN: Check = (value, place) => (typeof value === 'boolean' ? undefined : `${place} is not true or false`);
const NUMBER: Check = (value, place) => (typeof value === 'number' ? undefined : `${place} is not a number`);
const COUNT: Check = (value, place) => (isCount(value) ? undefined : `${place} is not a whole number from 0 on`);
const ONE: Check = (value, place) => (value === 1 ? undefined : `${place} is not 1, the version this Aerie knows`);
/** Numbers; whether each is an id of the vocabulary is for `check` and `export` to judge, record by record. */
const IDS: Check = (value, place) => {
  if (!Array.isArray(value)) return `${place} is not a list`;
  for (let index = 0; index < value.length; index += 1)
    if (typeof value[index] !== 'number') return `${place}[${index}] is not a number`;
  return undefined;
};

const TOOL_CALLS = list(shape({ id: STRING, name: STRING, arguments: STRING }));

const RECORD = shape({
  v: ONE,
  id: STRING,
  partition: STRING,
  messages: list(shape({ role: oneOf(ROLES), content: STRING, toolCalls: TOOL_CALLS, toolCallId: STRING, name: STRING })),
  tools: list(STRING),
  turns: list(
    shape({
      continues: COUNT,
      promptIds: IDS,
      outputIds: IDS,
      endsWithStopId: BOOLEAN,
      text: STRING,
      reasoning: STRING,
      toolCalls: TOOL_CALLS,
      finish: oneOf(FINISHES),
      usage: shape({ prompt: COUNT, completion: COUNT, cached: COUNT }),
      seed: COUNT,
      server: STRING,
    }),
  ),
  exact: BOOLEAN,
  inexactBecause: STRING,
  flags: list(oneOf(RECORD_FLAGS)),
  sampling: shape({ temperature: NUMBER, topP: NUMBER, topK: NUMBER, maxTokens: COUNT, seed: COUNT, stop: list(STRING) }),
  provenance: shape({
    ...{ model: STRING, revision: STRING, engine: STRING, engineVersion: STRING, weights: STRING },
    ...{ kvCacheDtype: STRING, templateHash: STRING, launch: COUNT, aerie: STRING },
  }),
});

/** Exactly these keys. */
function shape(checks: Readonly<Record<string, Check>>): Check {
  const known = Object.entries(checks);
  return (value, place) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return `${place || 'the line'} is not an object`;
    const fields = value as Readonly<Record<string, unknown>>;
    for (const [key, check] of known) {
      const inner = place === '' ? key : `${place}.${key}`;
      if (!Object.hasOwn(fields, key)) return `${inner} is missing`;
      const wrong = check(fields[key], inner);
      if (wrong !== undefined) return wrong;
    }
    const extra = Object.keys(fields).find((key) => !Object.hasOwn(checks, key));
    return extra === undefined ? undefined : `${place === '' ? extra : `${place}.${extra}`} is not a key of a record`;
  };
}

function list(check: Check): Check {
  return (value, place) => {
    if (!Array.isArray(value)) return `${place} is not a list`;
    for (const [index, item] of value.entries()) {
      const wrong = check(item, `${place}[${index}]`);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}

function oneOf(values: readonly string[]): Check {
  return (value, place) =>
    typeof value === 'string' && values.includes(value) ? undefined : `${place} is none of ${values.join(', ')}`;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function notARecord(because: string, cause?: unknown): AerieError {
  return new AerieError(
    'ledger.damaged',
    `A line of a shard is not a record: ${because}.`,
    {
      remedy: 'aerie check RUN lists every such line; put back a copy of the shard, or of the whole run folder.',
      facts: { because },
    },
    cause,
  );
}
