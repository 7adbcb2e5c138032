import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  anyRecord,
  continuingTurns,
  STOP_ID,
  sampleMessage,
  sampleRecord,
  sampleTurn,
  streamOf,
  VOCABULARY_SIZE,
} from '../../test/support/sample-records.ts';
import type { Role } from '../base/conversation.ts';
import type { RecordTurn } from '../shard/record.ts';
import { type CheckRequest, checkRun, findIds, findingsOf, hasErrors } from './check-run.ts';
import { indexBenchmarks } from './findings/benchmark-overlap.ts';
import { FINDING_CODES, FINDINGS } from './findings/codes.ts';

const facts = { vocabularySize: VOCABULARY_SIZE, stopIds: [STOP_ID], contextTokens: 4096, maxLength: 4000, run: 'runs/x' };
const check = (records: readonly unknown[], change: Partial<CheckRequest> = {}) =>
  checkRun({ ...facts, records: streamOf(records), ...change });
const SPECIAL_ID = 31;
const decoder = {
  decode: (ids: readonly number[]) => ids.map((id) => String.fromCharCode(64 + id)).join(''),
  isSpecial: (id: number) => id === SPECIAL_ID,
};

const second = (change: Parameters<typeof sampleTurn>[0]) => [sampleTurn(), sampleTurn(change)];
const inexact = {
  exact: false,
  inexactBecause: 'text only',
  turns: [sampleTurn({ promptIds: [], outputIds: [], finish: 'stop' })],
};

const calling = sampleTurn({ text: '', finish: 'tool-calls', toolCalls: [{ id: 'c', name: 'look', arguments: '{}' }] });
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at % VOCABULARY_SIZE);
const said = sampleMessage('user', 'What is the sum of two and two, and why is it so?');

/** One wrong dataset for each finding, with the only codes it may show. */
const WRONG: readonly (readonly [code: string, records: readonly unknown[], more?: readonly string[]])[] = [
  ['record-shape', [{ ...sampleRecord(), extra: 1 }]],
  ['record-shape', [{ ...sampleRecord(), tools: undefined }]],
  ['record-shape', [{ ...sampleRecord(), inexactBecause: null }]],
  ['record-shape', [sampleRecord({ turns: [] })]],
  ['record-shape', ['not a record']],
  ['record-unreadable', [{ partition: 'B1', id: 'abc', unreadable: 'its sha256 is another' }]],
  ['duplicate-key', [sampleRecord(), sampleRecord()]],
  ['message-order', [sampleRecord({ messages: [] })]],
  [
    'message-order',
    [
      sampleRecord({
        messages: [sampleMessage('user', 'a'), sampleMessage('assistant', 'b')],
      }),
    ],
  ],
  ['id-out-of-range', [sampleRecord({ turns: [sampleTurn({ outputIds: [VOCABULARY_SIZE, STOP_ID] })] })]],
  ['id-out-of-range', [sampleRecord({ turns: [sampleTurn({ promptIds: [-1] })] })]],
  ['id-out-of-range', [sampleRecord({ turns: [sampleTurn({ promptIds: [0.5] })] })]],
  ['ids-missing', [sampleRecord({ turns: [sampleTurn({ outputIds: [], finish: 'stop' })] })], ['stop-id-missing']],
  ['ids-missing', [sampleRecord({ turns: [sampleTurn({ promptIds: [] })] })]],
  ['longer-than-context', [sampleRecord({ turns: [sampleTurn({ promptIds: numbers(4094) })] })], ['supervision-cut']],
  ['turn-does-not-continue', [sampleRecord({ turns: second({}) })]],
  ['turn-does-not-continue', [sampleRecord({ turns: second({ continues: 4 }), flags: ['history-retokenised'] })]],
  ['flags-differ', [sampleRecord({ flags: ['truncated'] })]],
  ['flags-differ', [sampleRecord({ flags: ['history-retokenised'] })]],
  ['flags-differ', [sampleRecord({ inexactBecause: 'but it is' })]],
  ['usage-differs', [sampleRecord({ turns: [sampleTurn({ usage: { prompt: 3, completion: 2, cached: 0 } })] })]],
  ['stop-id-missing', [sampleRecord({ turns: [sampleTurn({ outputIds: [20], finish: 'stop' })] })]],
  ['stop-id-unexpected', [sampleRecord({ turns: [sampleTurn({ finish: 'length' })] })], ['truncated']],
  ['stop-id-unexpected', [sampleRecord({ turns: [sampleTurn({ endsWithStopId: false })] })]],
  ['unpaired-surrogate', [sampleRecord({ turns: [sampleTurn({ text: 'half \ud800' })] })]],
  ['nul-character', [sampleRecord({ turns: [sampleTurn({ text: 'a\u0000' })] })]],
  ['think-marker', [sampleRecord({ turns: [sampleTurn({ text: '</think> four' })] })]],
  ['empty-content', [sampleRecord({ turns: [sampleTurn({ text: ' ' })], flags: ['empty-answer'] })]],
  ['flags-differ', [sampleRecord({ flags: ['empty-answer'] })]],
  ['history-retokenised', [sampleRecord({ turns: second({}), flags: ['history-retokenised'] })]],
  ['truncated', [sampleRecord({ turns: [sampleTurn({ outputIds: [20] })] })]],
  ['not-exact', [sampleRecord(inexact)]],
  ['message-order', [sampleRecord({ messages: ['user', 'system'].map((role) => sampleMessage(role as Role, 'a')) })]],
  [
    'message-order',
    [
      sampleRecord({
        turns: continuingTurns([
          [20, 2],
          [21, 2],
        ]),
        messages: [sampleMessage('user', 'a')],
      }),
    ],
  ],
  ['message-order', [sampleRecord({ messages: ['a', 'b'].map((text) => sampleMessage('user', text)) })]],
  ['tool-result-missing', [sampleRecord({ turns: [calling], flags: ['tool-result-missing'] })]],
  ['flags-differ', [sampleRecord({ turns: [calling] })]],
  ['flags-differ', [sampleRecord({ flags: ['tool-result-missing'] })]],
  ['context-full', [sampleRecord({ messages: ['a', 'b'].map((text) => sampleMessage('user', text)), flags: ['context-full'] })]],
  ['flags-differ', [sampleRecord({ flags: ['context-full'] })]],
  ['supervision-cut', [sampleRecord({ turns: [sampleTurn({ promptIds: numbers(4000) })] })]],
  ['row-cut', [sampleRecord({ turns: [sampleTurn({ promptIds: numbers(3998) })] })]],
  ['repetition-loop', [sampleRecord({ turns: [sampleTurn({ outputIds: [...Array(50).fill([20, 21, 22]).flat(), STOP_ID] })] })]],
  [
    'repetition-loop',
    [sampleRecord({ ...inexact, turns: [{ ...inexact.turns[0], text: 'and so on '.repeat(60) } as RecordTurn] })],
    ['not-exact'],
  ],
  ['refusal', [sampleRecord({ turns: [sampleTurn({ text: 'I’m sorry, but I can’t help with that.' })] })]],
  ['template-marker', [sampleRecord({ turns: [sampleTurn({ text: 'four<|im_end|>' })] })]],
  ['template-marker', [sampleRecord({ messages: [sampleMessage('user', '[INST] what? [/INST]')] })]],
  ['near-duplicate', [sampleRecord({ id: 'first', messages: [said] }), sampleRecord({ id: 'second', messages: [said] })]],
  [
    'history-stripped',
    [sampleRecord({ turns: [sampleTurn({ reasoning: 'two and two' }), sampleTurn()], flags: ['history-retokenised'] })],
  ],
];

/** Found with a tokenizer or a list of benchmark prompts only; their wrong datasets are below and in `drift-findings.test.ts`. */
const WITH_MORE = ['text-differs', 'special-token', 'benchmark-overlap', 'prompt-drift', 'answer-drift', 'template-refuses'];

describe('check', () => {
  it.each(WRONG.map(([code, records, more = []]) => ({ code, records, more })))(
    'finds $code',
    async ({ code, records, more }) => {
      const { findings } = await check(records);
      expect(findings.map((finding) => finding.code).sort()).toEqual([code, ...more].sort());
      expect(findings.find((finding) => finding.code === code)).toMatchObject({ count: 1, share: 1 / records.length });
    },
  );

  it('has a wrong dataset for every code', () => {
    expect([...new Set([...WRONG.map(([code]) => code), ...WITH_MORE])].sort()).toEqual([...FINDING_CODES].sort());
    for (const code of FINDING_CODES) expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/);
  });

  it('finds nothing in a right dataset', async () => {
    const right = [
      sampleRecord(),
      sampleRecord({ partition: 'B2', id: 'a' }),
      sampleRecord({
        id: 'b',
        turns: continuingTurns([
          [20, 2],
          [21, 2],
        ]),
      }),
    ];
    expect(await check(right)).toEqual({
      ...{ records: 3, findings: [], drift: { rows: 0, differing: 0 } },
      decoded: { rows: 0, differing: 0 },
    });
  });

  it('finds no error in any right record, only what its flags say', async () => {
    await fc.assert(
      fc.asyncProperty(anyRecord, async (record) => {
        const { findings } = await check([record]);
        expect(findings.map((finding) => finding.code).sort()).toEqual([...record.flags].sort());
      }),
    );
  });

  it('compares ids with texts where there is a decoder, stop id aside', async () => {
    const right = sampleRecord({ turns: [sampleTurn({ text: 'TU' })] });
    const wrong = sampleRecord({ id: 'w', turns: [sampleTurn({ text: 'TV' })] });
    const result = await check([right, wrong, sampleRecord({ ...inexact, id: 'i' })], { decoder });
    expect(result.decoded).toEqual({ rows: 2, differing: 1 });
    expect(result.findings[0]).toMatchObject({ code: 'text-differs', count: 1, exampleIds: ['B1/w'] });
  });

  it('tells a special token inside an answer from ids that are not the text', async () => {
    const leaking = sampleRecord({ turns: [sampleTurn({ outputIds: [20, SPECIAL_ID, 21, STOP_ID], text: 'TU' })] });
    const { findings, decoded } = await check([leaking], { decoder });
    expect(findings).toMatchObject([{ code: 'special-token', severity: 'warning', count: 1 }]);
    expect(decoded).toEqual({ rows: 1, differing: 0 });
  });

  it('takes the special tokens at which the engine split an answer for what they are', async () => {
    const outputIds = [SPECIAL_ID, 20, SPECIAL_ID, STOP_ID];
    const reasoned = sampleTurn({ outputIds, text: '', reasoning: 'T', finish: 'stop' });
    const called = sampleTurn({ ...calling, outputIds });
    for (const turn of [reasoned, called]) {
      const { findings } = await check([sampleRecord({ turns: [turn] })], { decoder });
      expect(findings.map(({ code }) => code)).not.toContain('special-token');
    }
  });

  it('finds the parts of an answer whose reasoning the engine split off', async () => {
    const turn = (reasoning: string) =>
      sampleRecord({ turns: [sampleTurn({ outputIds: [8, 9, 0, 20, STOP_ID], reasoning, text: ' T ' })] });
    expect((await check([turn('HI')], { decoder })).decoded.differing).toBe(0);
    expect((await check([turn('HO')], { decoder })).decoded.differing).toBe(1);
  });

  it('knows an answer that a stop text ended: its ids hold the stop text, its text does not', async () => {
    const stopped = (text: string, stop: readonly string[]) => {
      const turn = sampleTurn({ outputIds: [20, 21, 22, 23], text, finish: 'stop' });
      return sampleRecord({ turns: [turn], sampling: { ...sampleRecord().sampling, stop } });
    };
    expect((await check([stopped('TU', ['V'])], { decoder })).findings).toEqual([]);
    expect((await check([stopped('TX', ['V'])], { decoder })).findings).toMatchObject([{ code: 'text-differs' }]);
    const { findings } = await check([stopped('TU', [])], { decoder });
    expect(findings.map(({ code }) => code)).toEqual(['stop-id-missing', 'text-differs']);
  });

  it('allows half a character at the end of a cut answer and nowhere else', async () => {
    const halves = { decode: () => 'a\uFFFD', isSpecial: () => false };
    const cut = (text: string) => check([sampleRecord({ turns: [sampleTurn({ outputIds: [20], text })] })], { decoder: halves });
    expect((await cut('a')).decoded.differing).toBe(0);
    expect((await cut('a\uFFFD\uFFFD')).decoded.differing).toBe(0);
    expect((await cut('\uFFFDa')).decoded.differing).toBe(1);
  });

  it('does not check what is not known', async () => {
    const record = sampleRecord({ turns: [sampleTurn({ outputIds: [9_999_999], finish: 'stop' })] });
    expect((await check([record], { vocabularySize: 0, stopIds: [], contextTokens: 0 })).findings).toEqual([]);
  });

  it('counts records once, names ten at most, puts errors first and the run into the next step', async () => {
    const cut = Array.from({ length: 30 }, (_, index) =>
      sampleRecord({ id: `c${index}`, turns: [sampleTurn({ outputIds: [20] })] }),
    );
    const result = await check([...cut, sampleRecord({ id: 'e', flags: ['truncated'] })]);
    expect(result.findings.map((finding) => [finding.code, finding.count, finding.exampleIds.length])).toEqual([
      ['flags-differ', 1, 1],
      ['truncated', 30, 10],
    ]);
    expect(result.findings[1]?.share).toBeCloseTo(30 / 31);
    expect(result.findings[0]?.next).toContain('aerie check runs/x --json');
    for (const { next, sentence } of Object.values(FINDINGS)) expect(`${sentence} ${next}`).not.toMatch(/undefined|CODE/);
    expect(hasErrors(result)).toBe(true);
    expect(hasErrors(await check(cut))).toBe(false);
    expect(FINDINGS.truncated.severity).toBe('warning');
  });

  it('finds prompts that are on a list of benchmark prompts', async () => {
    const records = [sampleRecord(), sampleRecord({ id: 'o', messages: [said] })];
    const benchmarks = indexBenchmarks([said.content.toUpperCase()]);
    const { findings } = await check(records, { benchmarks });
    expect(findings).toMatchObject([{ code: 'benchmark-overlap', severity: 'warning', count: 1, exampleIds: ['B1/o'] }]);
  });

  it('keeps the first of near duplicates, so that leaving out what is found leaves nothing to find', async () => {
    const records = ['a', 'b', 'c'].map((id) => sampleRecord({ id, messages: [said] }));
    const found = await findIds('near-duplicate', { ...facts, records: streamOf(records) });
    expect([...found]).toEqual(['B1/b', 'B1/c']);
    const rest = records.filter(({ id }) => !found.has(`B1/${id}`));
    expect((await check(rest)).findings).toEqual([]);
  });

  it('says the length that rows are cut at', async () => {
    const { findings } = await check([sampleRecord({ turns: [sampleTurn({ promptIds: numbers(20) })] })], { maxLength: 20 });
    expect(findings).toMatchObject([{ code: 'supervision-cut', severity: 'error' }]);
    expect(findings[0]?.sentence).toContain('cuts rows at 20 tokens');
    expect(findings[0]?.next).toContain('aerie check runs/x --max-length N');
    expect(findings[0]?.next).toContain('aerie export runs/x --for specforge --without supervision-cut --max-length 20 ');
  });

  it('names the records that have a finding, and what one record shows by itself', async () => {
    const cut = sampleRecord({ id: 'c', turns: [sampleTurn({ outputIds: [20] })] });
    const records = [sampleRecord(), cut, sampleRecord()];
    const request = () => ({ ...facts, records: streamOf(records) });
    expect([...(await findIds('truncated', request()))]).toEqual(['B1/c']);
    expect([...(await findIds(['truncated', 'duplicate-key'], request()))]).toEqual(['B1/c', 'B1/abc']);
    expect([...findingsOf(cut, facts)]).toEqual(['truncated']);
    const differs = sampleRecord({ turns: [sampleTurn({ text: 'TV' })] });
    expect([...findingsOf(differs, facts, decoder)]).toEqual(['text-differs']);
  });
});
