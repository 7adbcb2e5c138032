import { describe, expect, it } from 'vitest';
import { sampleMessage, sampleRecord, sampleTurn, streamOf } from '../../../test/support/sample-records.ts';
import type { RecordTurn, TrainingRecord } from '../../shard/record.ts';
import { openDecoder } from '../../tokens/decoder.ts';
import { type GgufVocabulary, renderTokenizerFiles } from '../../tokens/tokenizer-json.ts';
import { checkRun } from '../check-run.ts';
import { findDrift } from './drift-findings.ts';

const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
const ASCII = Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at));
const tokens = [...SPECIAL, ...ASCII, 'Ġ', 'Ċ', 'he', 'll', 'hell', 'hello'];
const TEMPLATE =
  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}" +
  "{% if m.reasoning_content and loop.last %}{{ '{' + m.reasoning_content + '}' }}{% endif %}" +
  "{{ m.content }}{% for call in m.tool_calls or [] %}{{ call.function.name + '(' + call.function.arguments.at + ')' }}{% endfor %}" +
  "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

function tokenizer(template: string) {
  const vocabulary: GgufVocabulary = {
    ...{ model: 'gpt2', pre: 'gpt-2', tokens, merges: ['h e', 'l l', 'he ll', 'hell o'] },
    token_types: tokens.map((token) => (SPECIAL.includes(token) ? 3 : 1)),
    ...{ chat_template: template, bos_token_id: 1, eos_token_id: 2, add_bos: false },
  };
  const files = renderTokenizerFiles(vocabulary);
  if (files === undefined) throw new Error('a gpt2 vocabulary was given');
  return openDecoder(files.tokenizer, files.config);
}

const run = tokenizer(TEMPLATE);
const header = (role: string) => `<|im_start|>${role}\n`;
const asked = (text: string) => run.encode(`${header('user')}${text}<|im_end|>\n${header('assistant')}`);
const stop = tokens.indexOf('<|im_end|>');
const spelt = [...'hello'].map((letter) => tokens.indexOf(letter));

function turn(promptIds: readonly number[], change: Partial<RecordTurn> = {}): RecordTurn {
  return sampleTurn({ promptIds, outputIds: [...run.encode('hello'), stop], endsWithStopId: true, text: 'hello', ...change });
}
const oneTurn = (change: Partial<RecordTurn> = {}, over: Partial<TrainingRecord> = {}) =>
  sampleRecord({ messages: [sampleMessage('user', 'say it')], turns: [turn(asked('say it'), change)], ...over });

describe('drift', () => {
  it('is none where the conversation, rendered and encoded anew, gives the ids of the engine', () => {
    expect(findDrift(oneTurn(), run)).toEqual({ rows: 1, differing: 0, codes: [] });
    const cut = oneTurn({ outputIds: run.encode('hell'), endsWithStopId: false, text: 'hell', finish: 'length' });
    expect(findDrift(cut, run).differing).toBe(0);
  });

  it('is in the answer where the model wrote other tokens than its text is split into', () => {
    expect(findDrift(oneTurn({ outputIds: [...spelt, stop] }), run)).toEqual({ rows: 1, differing: 1, codes: ['answer-drift'] });
  });

  it('is in the prompt where another template served', () => {
    const other = tokenizer(TEMPLATE.replaceAll('<|im_start|>', '<|endoftext|>'));
    expect(findDrift(oneTurn(), other)).toEqual({ rows: 1, differing: 1, codes: ['prompt-drift'] });
  });

  it('takes a conversation that is one sequence as one row, and else each turn as its own', () => {
    const first = turn(asked('say it'));
    const next = run.encode(`\n${header('user')}again<|im_end|>\n${header('assistant')}`);
    const before = first.promptIds.length + first.outputIds.length;
    const messages = ['say it', 'again'].map((text) => sampleMessage('user', text));
    const whole = sampleRecord({ messages, turns: [first, turn(next, { continues: before })] });
    expect(findDrift(whole, run)).toEqual({ rows: 1, differing: 0, codes: [] });
    const anew = turn([...first.promptIds, ...first.outputIds, ...next]);
    const apart = sampleRecord({ messages, turns: [first, anew], flags: ['history-retokenised'] });
    expect(findDrift(apart, run)).toEqual({ rows: 2, differing: 0, codes: [] });
    const odd = sampleRecord({ messages, turns: [turn(asked('say it'), { outputIds: [...spelt, stop] }), anew] });
    expect(findDrift(odd, run)).toEqual({ rows: 2, differing: 1, codes: ['answer-drift'] });
  });

  it('gives reasoning and tool calls to the template as transformers does', () => {
    const outputIds = [...run.encode('{so}look(3)'), stop];
    const toolCalls = [{ id: 'c', name: 'look', arguments: '{"at":3}' }];
    const calling = oneTurn({ outputIds, text: '', reasoning: 'so', toolCalls, finish: 'tool-calls' });
    expect(findDrift(calling, run)).toEqual({ rows: 1, differing: 0, codes: [] });
  });

  it('gives the template what the partition gave it beside the messages', () => {
    const kind = tokenizer(`{{ 'kind' if be_kind else '' }}${TEMPLATE}`);
    const promptIds = [...run.encode('kind'), ...asked('say it')];
    const record = sampleRecord({ messages: [sampleMessage('user', 'say it')], turns: [turn(promptIds)] });
    expect(findDrift(record, kind, { be_kind: true }).codes).toEqual([]);
    expect(findDrift(record, kind).codes).toEqual(['prompt-drift']);
  });

  it('says what the template refuses instead of comparing it', () => {
    const strict = tokenizer(`{{ raise_exception('no') }}`);
    expect(findDrift(oneTurn(), strict)).toEqual({ rows: 0, differing: 0, codes: ['template-refuses'] });
  });

  it('compares nothing without ids or without a template that can be read', () => {
    expect(findDrift(oneTurn({}, { exact: false }), run).rows).toBe(0);
    for (const template of ['', '{% for %}']) expect(findDrift(oneTurn(), tokenizer(template)).rows).toBe(0);
  });

  it.each([
    ['answer-drift', oneTurn({ outputIds: [...spelt, stop] }), TEMPLATE],
    ['prompt-drift', oneTurn(), TEMPLATE.replaceAll('<|im_start|>', '<|endoftext|>')],
    ['template-refuses', oneTurn(), `{{ raise_exception('no') }}`],
  ])('is what check says: %s', async (code, record, template) => {
    const facts = { vocabularySize: tokens.length, stopIds: [stop], contextTokens: 0, run: 'r' };
    const { findings } = await checkRun({ ...facts, records: streamOf([record]), decoder: tokenizer(template) });
    expect(findings).toMatchObject([{ code, severity: 'warning', count: 1 }]);
  });
});
