/** Records for tests: a right one, and a generator of right ones. What a test is about, it changes itself. */
import fc from 'fast-check';
import type { Message, Role } from '../../src/base/conversation.ts';
import type { RecordTurn, TrainingRecord } from '../../src/shard/record.ts';

export const STOP_ID = 2;
export const VOCABULARY_SIZE = 100;

/** With every key, as a message stands in a shard. */
export function sampleMessage(role: Role, content: string): Required<Message> {
  return { role, content, toolCalls: [], toolCallId: '', name: '' };
}

export function sampleTurn(change: Partial<RecordTurn> = {}): RecordTurn {
  const promptIds = change.promptIds ?? [1, 10, 11];
  const outputIds = change.outputIds ?? [20, 21, STOP_ID];
  const continues = change.continues ?? 0;
  const endsWithStopId = outputIds.at(-1) === STOP_ID;
  return {
    continues,
    promptIds,
    outputIds,
    endsWithStopId,
    text: 'four',
    reasoning: '',
    toolCalls: [],
    finish: endsWithStopId ? 'stop' : 'length',
    usage: { prompt: continues + promptIds.length, completion: outputIds.length, cached: 0 },
    seed: 7,
    server: 'here',
    ...change,
  };
}

export function sampleRecord(change: Partial<TrainingRecord> = {}): TrainingRecord {
  const turns = change.turns ?? [sampleTurn()];
  return {
    v: 1,
    id: 'abc',
    partition: 'B1',
    // Another id is another prompt: records that say the same are near duplicates.
    messages: turns.map((_turn, index) =>
      sampleMessage('user', `question ${index}${change.id === undefined ? '' : ` of ${change.id}`}`),
    ),
    tools: [],
    turns,
    exact: true,
    inexactBecause: '',
    flags: turns.some((turn) => turn.finish === 'length') ? ['truncated'] : [],
    sampling: { temperature: 0.6, topP: 0.95, topK: 20, maxTokens: 64, seed: 7, stop: [] },
    provenance: {
      model: 'm',
      revision: '',
      engine: 'embedded',
      engineVersion: '1',
      weights: 'Q4_1',
      kvCacheDtype: 'f16',
      templateHash: '',
      launch: 1,
      aerie: '0.1.0',
    },
    ...change,
  };
}

/** Turns that each continue the one before, as the engine sees a conversation. */
export function continuingTurns(outputs: readonly (readonly number[])[]): RecordTurn[] {
  let before = 0;
  return outputs.map((outputIds, index) => {
    const turn = sampleTurn({ continues: before, promptIds: [1, 30 + (index % 10)], outputIds, text: `answer ${index}` });
    before += turn.promptIds.length + outputIds.length;
    return turn;
  });
}

const outputIds = fc
  .tuple(fc.array(fc.integer({ min: 3, max: VOCABULARY_SIZE - 1 }), { maxLength: 12 }), fc.boolean())
  .map(([ids, stops]) => (stops || ids.length === 0 ? [...ids, STOP_ID] : ids));

/** Right records, one to four turns; about half of them with a history that does not continue. */
export const anyRecord: fc.Arbitrary<TrainingRecord> = fc
  .record({
    number: fc.integer({ min: 0, max: 1e9 }),
    outputs: fc.array(outputIds, { minLength: 1, maxLength: 4 }),
    continues: fc.boolean(),
    text: fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => text.trim() !== '' && !/<\/?think>/i.test(text)),
    temperature: fc.constantFrom(0, 0.6, 1),
  })
  .map(({ number, outputs, continues, text, temperature }) => {
    const whole = continuingTurns(outputs).map((turn) => ({ ...turn, text }));
    const turns = continues
      ? whole
      : whole.map((turn) => ({ ...turn, continues: 0, usage: { ...turn.usage, prompt: turn.promptIds.length } }));
    const record = sampleRecord({ id: `id${number}`, turns });
    const isRetokenised = !continues && turns.length > 1;
    return {
      ...record,
      sampling: { ...record.sampling, temperature },
      flags: isRetokenised ? [...record.flags, 'history-retokenised' as const] : record.flags,
    };
  });

export async function* streamOf<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items;
}
