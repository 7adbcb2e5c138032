import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyRecord, continuingTurns, sampleRecord, sampleTurn } from '../../test/support/sample-records.ts';
import { promptIdsOf } from '../shard/record.ts';
import { renderTokenRows } from './token-rows.ts';

const options = { idPrefix: '', vocabularySize: 100, extendMask: false };

describe('token rows', () => {
  it('make one row of a conversation whose turns continue, with ones on every answer', () => {
    const record = sampleRecord({
      turns: continuingTurns([
        [20, 2],
        [21, 22],
      ]),
    });
    const { rows, leftOut } = renderTokenRows(record, options);
    expect(leftOut).toEqual([]);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      id: 'abc_gen0',
      primary_id: 'abc',
      input_ids: [1, 30, 20, 2, 1, 31, 21, 22],
      loss_mask: [0, 0, 1, 1, 0, 0, 1, 1],
      text: 'answer 0\n\nanswer 1',
      metadata: {
        turns: 2,
        first_turn: 0,
        finish_reason: 'length',
        is_truncated: true,
        usage: { prompt_tokens: 4, completion_tokens: 4, total_tokens: 8 },
      },
    });
  });

  it('make one row per turn where a history was tokenised anew', () => {
    const turns = [sampleTurn(), sampleTurn({ promptIds: [1, 10, 20, 5], outputIds: [22, 2] })];
    const { rows } = renderTokenRows(sampleRecord({ turns, flags: ['history-retokenised'] }), { ...options, idPrefix: 'B1/' });
    expect(rows.map((row) => row.id)).toEqual(['B1/abc_gen0', 'B1/abc_gen1']);
    expect(rows[1]).toMatchObject({
      input_ids: [1, 10, 20, 5, 22, 2],
      loss_mask: [0, 0, 0, 0, 1, 1],
      metadata: { first_turn: 1, turns: 1 },
    });
  });

  it('keep every prompt whole when only the last of three turns begins anew', () => {
    const [first, second] = continuingTurns([
      [20, 2],
      [21, 2],
    ]);
    if (first === undefined || second === undefined) throw new Error('two turns were asked for');
    const { rows } = renderTokenRows(sampleRecord({ turns: [first, second, sampleTurn({ promptIds: [1, 9] })] }), options);
    expect(rows.map((row) => row.input_ids)).toEqual([
      [1, 30, 20, 2],
      [1, 30, 20, 2, 1, 31, 21, 2],
      [1, 9, 20, 21, 2],
    ]);
  });

  it('leave out what has no ids, no answer or impossible ids, and say why', () => {
    const leftOut = (change: Parameters<typeof sampleRecord>[0]) => renderTokenRows(sampleRecord(change), options).leftOut;
    expect(leftOut({ exact: false, inexactBecause: 'text only' })).toEqual(['not-exact']);
    expect(leftOut({ turns: [sampleTurn({ outputIds: [] })] })).toEqual(['no-output-ids']);
    for (const id of [-1, 100, 1.5]) expect(leftOut({ turns: [sampleTurn({ outputIds: [id] })] })).toEqual(['id-out-of-range']);
  });

  it('hold text that any JSON reader takes', () => {
    const { rows } = renderTokenRows(sampleRecord({ turns: [sampleTurn({ text: 'a\ud83d b\u0000 \u{1f600}' })] }), options);
    expect(rows[0]?.text).toBe('a\uFFFD b\uFFFD \u{1f600}');
  });

  it('supervise exactly the output ids, and rebuild each prompt before them', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const { rows } = renderTokenRows(record, options);
        const supervised = rows.flatMap((row) => row.input_ids.filter((_id, place) => row.loss_mask[place] === 1));
        expect(supervised).toEqual(record.turns.flatMap((turn) => turn.outputIds));
        const prompts = promptIdsOf(record.turns);
        const whole = record.turns.map((turn, index) => [...(prompts[index] ?? []), ...turn.outputIds]);
        expect(rows.map((row) => row.input_ids)).toEqual(rows.length === record.turns.length ? whole : whole.slice(-1));
      }),
    );
  });
});
