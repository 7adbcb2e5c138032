/** What is asked for a turn, what a reply becomes, and that a record gives back exactly what was asked and answered. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Prompt } from '../base/conversation.ts';
import type { Reply } from '../engine/dialect.ts';
import { answerTokens, promptIdsOf, type RecordTurn } from '../shard/record.ts';
import { idsAfter, idsThrough, makeRecord, makeTurn } from './conversation.ts';

const user = (content: string) => ({ role: 'user', content }) as const;
const prompt: Prompt = { id: 'p', messages: [{ role: 'system', content: 's' }, user('a'), user('b'), user('c')], tools: [] };

function reply(promptIds: readonly number[], outputIds: readonly number[], change: Partial<Reply> = {}): Reply {
  return {
    ...{ promptIds, outputIds, text: `t${outputIds.length}`, reasoning: '', toolCalls: [], finish: 'stop', endsWithStopId: true },
    usage: { prompt: promptIds.length, completion: outputIds.length, cached: 0 },
    ...change,
  };
}

const PARTS = {
  ...{ prompt, partition: 'B1', ending: 'whole' as const, exactness: { exact: true, because: '' } },
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 9, seed: 0, stop: [] },
  provenance: {
    model: 'm',
    revision: '',
    engine: 'vllm',
    engineVersion: '',
    weights: '',
    kvCacheDtype: '',
    templateHash: '',
    launch: 1,
    aerie: '0',
  },
};

test('a prompt that goes on where the last turn ended says so and keeps only the rest', () => {
  expect(makeTurn(reply([1, 2, 3, 9], [4]), [1, 2, 3], 5, 'here')).toMatchObject({
    ...{ continues: 3, promptIds: [9], outputIds: [4], seed: 5, server: 'here' },
  });
  for (const other of [
    [1, 2, 8, 9],
    [1, 2],
  ]) {
    expect(makeTurn(reply(other, [4]), [1, 2, 3], 5, 'here')).toMatchObject({ continues: 0, promptIds: other });
  }
});

test('a record gives back what was asked, turn by turn, whether or not each prompt goes on from the last', () => {
  const ids = fc.array(fc.nat(300), { minLength: 1, maxLength: 8 });
  const turn = fc.record({ goesOn: fc.boolean(), fresh: ids, outputIds: ids });
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 6 }), (given) => {
      const asked: number[][] = [];
      const turns: RecordTurn[] = [];
      let before: readonly number[] = [];
      for (const { goesOn, fresh, outputIds } of given) {
        const promptIds = goesOn ? [...before, ...fresh] : fresh;
        asked.push(promptIds);
        const made = makeTurn(reply(promptIds, outputIds), before, 1, 's');
        turns.push(JSON.parse(JSON.stringify(made)) as RecordTurn);
        before = idsThrough(before, made);
        expect(before).toEqual([...promptIds, ...outputIds]);
        expect(idsAfter(turns)).toEqual(before);
        if (goesOn && turns.length > 1)
          expect(made.continues).toBe(asked.at(-2)?.length === undefined ? 0 : before.length - fresh.length - outputIds.length);
      }
      expect(promptIdsOf(turns)).toEqual(asked);
    }),
  );
});

test('what a reader must know of a record stands in its flags', () => {
  const flags = (...replies: Reply[]) => {
    let before: readonly number[] = [];
    const turns = replies.map((given) => {
      const made = makeTurn(given, before, 1, 's');
      before = idsThrough(before, made);
      return made;
    });
    return makeRecord({ ...PARTS, turns }).flags;
  };
  expect(flags(reply([1], [2]))).toEqual([]);
  for (const ending of ['tool-result-missing', 'context-full'] as const)
    expect(makeRecord({ ...PARTS, turns: [], ending }).flags).toEqual([ending]);
  expect(flags(reply([1], [2], { finish: 'length' }))).toEqual(['truncated']);
  expect(flags(reply([1], [2]), reply([7, 8], [2]))).toEqual(['history-retokenised']);
  expect(flags(reply([1], [2], { text: ' \n' }))).toEqual(['empty-answer']);
  expect(flags(reply([1], [2], { text: '', toolCalls: [{ id: '', name: 'f', arguments: '' }] }))).toEqual([]);
});

test('a record is exact only where every turn has ids, whoever answered last; text-only history is not called retokenised', () => {
  const exact = makeTurn(reply([1, 2], [3]), [], 1, 'exact');
  const text = makeTurn(reply([], [], { usage: { prompt: 2, completion: 7, cached: 0 } }), [], 1, 'text');
  const recordOf = (turns: readonly RecordTurn[], exactness = { exact: true, because: '' }) =>
    makeRecord({ ...PARTS, turns, exactness });
  const because = (turn: number) => `text gave turn ${turn} as text, without token ids`;
  expect(recordOf([exact])).toMatchObject({ exact: true, inexactBecause: '', flags: [] });
  expect(recordOf([text, exact])).toMatchObject({ exact: false, inexactBecause: because(1), flags: [] });
  expect(recordOf([exact, text])).toMatchObject({ exact: false, inexactBecause: because(2), flags: [] });
  expect(recordOf([text], { exact: false, because: 'why' })).toMatchObject({ exact: false, inexactBecause: 'why' });
  expect([answerTokens(exact), answerTokens(text)]).toEqual([1, 7]);
});
