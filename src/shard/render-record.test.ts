/** A record and its line: one order of keys, nothing lost on the way, and each kind of wrong line named. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineBuffer } from './line-buffer.ts';
import { parseRecord } from './parse-record.ts';
import { FINISHES, RECORD_FLAGS, type RecordTurn, type TrainingRecord } from './record.ts';
import { renderRecord } from './render-record.ts';

const text = fc.string({ unit: 'binary' });
const ids = fc.array(fc.nat(200_000), { maxLength: 20 });

const toolCalls = fc.array(fc.record({ id: text, name: text, arguments: text }), { maxLength: 2 });

const turn: fc.Arbitrary<RecordTurn> = fc.record({
  ...{ continues: fc.nat(), promptIds: ids, outputIds: ids, endsWithStopId: fc.boolean(), text, reasoning: text },
  toolCalls,
  finish: fc.constantFrom(...FINISHES),
  usage: fc.record({ prompt: fc.nat(), completion: fc.nat(), cached: fc.nat() }),
  ...{ seed: fc.nat(), server: text },
});

const record: fc.Arbitrary<TrainingRecord> = fc.record({
  v: fc.constant(1 as const),
  ...{ id: text, partition: text },
  messages: fc.array(
    fc.record({ role: fc.constantFrom('system', 'user', 'tool'), content: text, toolCalls, toolCallId: text, name: text }),
    { maxLength: 4 },
  ),
  tools: fc.array(text, { maxLength: 2 }),
  turns: fc.array(turn, { maxLength: 3 }),
  ...{ exact: fc.boolean(), inexactBecause: text },
  flags: fc.subarray([...RECORD_FLAGS]),
  sampling: fc.record({
    temperature: fc.constantFrom(0, 0.6),
    topP: fc.constant(0.95),
    topK: fc.nat(),
    maxTokens: fc.nat(),
    seed: fc.nat(),
    stop: fc.array(text, { maxLength: 2 }),
  }),
  provenance: fc.record({
    ...{ model: text, revision: text, engine: text, engineVersion: text, weights: text, kvCacheDtype: text, templateHash: text },
    ...{ launch: fc.nat(), aerie: text },
  }),
});

const buffer = new LineBuffer();
/** A line of its own. */
function lineOf(value: TrainingRecord): Buffer {
  buffer.reset();
  return Buffer.from(renderRecord(value, buffer));
}

/** Every key of a value with its place, in order; list items are all the same place. */
function keysOf(value: unknown, place = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => keysOf(item, `${place}[]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [`${place}.${key}`, ...keysOf(inner, `${place}.${key}`)]);
}

/** The same value with the keys of every object the other way round. */
function reversed<T>(value: T): T {
  if (Array.isArray(value)) return value.map(reversed) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, inner]) => [key, reversed(inner)]),
  ) as T;
}

const sample = fc.sample(
  record.filter(
    ({ messages, turns }) =>
      messages.length === 1 && messages[0]?.toolCalls?.length === 0 && turns.length === 1 && turns[0]?.toolCalls.length === 1,
  ),
  { numRuns: 1, seed: 1 },
)[0] as TrainingRecord;

test('a record comes back from its line as it was', () => {
  fc.assert(
    fc.property(record, (value) => {
      const line = lineOf(value);
      expect(line.toString()).toBe(`${JSON.stringify(value)}\n`);
      expect(line.indexOf(0x0a)).toBe(line.length - 1);
      expect(parseRecord(line)).toEqual(value);
    }),
  );
});

test('the line does not depend on the order in which a caller wrote the keys', () => {
  fc.assert(fc.property(record, (value) => lineOf(reversed(value)).equals(lineOf(value))));
});

test('the keys of a record are these, in this order', () => {
  const turnKeys = [
    'continues',
    'promptIds',
    'outputIds',
    'endsWithStopId',
    'text',
    'reasoning',
    'toolCalls',
    'toolCalls[].id',
    'toolCalls[].name',
    'toolCalls[].arguments',
    'finish',
    'usage',
    'usage.prompt',
    'usage.completion',
    'usage.cached',
    'seed',
    'server',
  ];
  const provenanceKeys = [
    'model',
    'revision',
    'engine',
    'engineVersion',
    'weights',
    'kvCacheDtype',
    'templateHash',
    'launch',
    'aerie',
  ];
  expect(keysOf(JSON.parse(lineOf(sample).toString()))).toEqual([
    ...['.v', '.id', '.partition', '.messages', '.messages[].role', '.messages[].content'],
    ...['.messages[].toolCalls', '.messages[].toolCallId', '.messages[].name', '.tools', '.turns'],
    ...turnKeys.map((key) => `.turns[].${key}`),
    ...['.exact', '.inexactBecause', '.flags', '.sampling'],
    ...['temperature', 'topP', 'topK', 'maxTokens', 'seed', 'stop'].map((key) => `.sampling.${key}`),
    ...['.provenance', ...provenanceKeys.map((key) => `.provenance.${key}`)],
  ]);
});

test('a line with any key missing, null or too many is refused and the key is named', () => {
  const places = keysOf(sample);
  for (const place of places) {
    const path = place.slice(1).replaceAll('[]', '.0').split('.');
    const key = path.at(-1) as string;
    const change = (edit: (holder: Record<string, unknown>) => void) => {
      const copy = structuredClone(sample) as unknown as Record<string, unknown>;
      edit(path.slice(0, -1).reduce((holder, part) => holder[part] as Record<string, unknown>, copy));
      return () => parseRecord(JSON.stringify(copy));
    };
    expect(
      change((holder) => delete holder[key]),
      place,
    ).toThrow(`${key} is missing`);
    expect(
      change((holder) => Object.assign(holder, { [key]: null })),
      place,
    ).toThrow(`${key} is`);
    expect(
      change((holder) => Object.assign(holder, { extra: 1 })),
      place,
    ).toThrow('extra is not a key of a record');
  }
});

test.each([
  ['{"v":1', 'it is not JSON'],
  ['[]', 'the line is not an object'],
  [JSON.stringify({ ...sample, v: 2 }), 'v is not 1'],
  [JSON.stringify({ ...sample, flags: ['odd'] }), 'flags[0] is none of'],
  [JSON.stringify({ ...sample, turns: [{ ...sample.turns[0], outputIds: [1, '2'] }] }), 'turns[0].outputIds[1] is not a number'],
  [JSON.stringify({ ...sample, turns: [{ ...sample.turns[0], outputIds: [null] }] }), 'turns[0].outputIds[0] is not a number'],
])('%.20s… is not a record', (line, because) => {
  expect(() => parseRecord(Buffer.from(line))).toThrow(because);
  expect(() => parseRecord(line)).toThrow(expect.objectContaining({ code: 'ledger.damaged' }));
});
