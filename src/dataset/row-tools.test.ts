/** Tools, given turns, mapped columns and text parts: what a row becomes in either mode. */
import { expect, test } from 'vitest';
import { findNextTurn } from '../shard/walk-conversation.ts';
import { type RowOptions, readRowValue } from './read-row.ts';

const read = (row: unknown, options: Partial<RowOptions> = {}) => readRowValue(row, { turns: 'all', columns: {}, ...options });
function promptOf(row: unknown, options: Partial<RowOptions> = {}) {
  const result = read(row, options);
  if (result.kind !== 'prompt') throw new Error(`${result.reason}: ${result.detail}`);
  return result.prompt;
}

const look = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
const conversation = [
  { role: 'system', content: '' },
  { role: 'user', content: 'weather?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: { at: 'Po' } } }],
  },
  { role: 'tool', tool_call_id: 'c1', content: 'rain' },
  { role: 'assistant', content: 'It rains.' },
  { role: 'user', content: 'thanks' },
  { role: 'assistant', content: 'You are welcome.' },
];

test('turns: all drops the answers and keeps the results with the name of their tool', () => {
  const prompt = promptOf({ tools: [look], messages: conversation });
  expect(prompt.tools).toEqual([JSON.stringify(look)]);
  expect(prompt.messages).toEqual([
    { role: 'user', content: 'weather?' },
    { role: 'tool', content: 'rain', name: 'look' },
    { role: 'user', content: 'thanks' },
  ]);
});

test('turns: last keeps what was given, up to the last user message or result, and is asked once', () => {
  const { messages } = promptOf({ messages: conversation }, { turns: 'last' });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
  expect(messages[1]?.toolCalls).toEqual([{ id: 'c1', name: 'look', arguments: '{"at":"Po"}' }]);
  expect(messages[2]).toMatchObject({ toolCallId: 'c1', name: 'look' });
  const next = findNextTurn(messages, []);
  expect(next.kind === 'ask' && next.messages.length).toBe(5);
  expect(findNextTurn(messages, [{ text: 'x', toolCalls: [] }]).kind).toBe('over');
  const atResult = promptOf({ messages: conversation.slice(0, 4) }, { turns: 'last' });
  expect(atResult.messages.at(-1)).toMatchObject({ role: 'tool' });
});

test('calls and results in the spelling of ShareGPT, several at once, with and without ids', () => {
  const conversations = [
    { from: 'human', value: 'both?' },
    { from: 'function_call', value: '{"name":"look","arguments":{"at":1}}' },
    { from: 'function_call', value: '{"name":"hear","arguments":"{}"}' },
    { from: 'observation', value: 'rain' },
    { from: 'observation', value: '' },
    { from: 'gpt', value: 'done' },
  ];
  expect(
    promptOf({ conversations })
      .messages.slice(1)
      .map(({ name, content }) => [name, content]),
  ).toEqual([
    ['look', 'rain'],
    ['hear', ''],
  ]);
  const { messages } = promptOf({ conversations }, { turns: 'last' });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool']);
  expect(messages[1]?.toolCalls?.map(({ name, arguments: text }) => [name, text])).toEqual([
    ['look', '{"at":1}'],
    ['hear', '{}'],
  ]);
  expect(messages[3]?.toolCallId).toBe(messages[1]?.toolCalls?.[1]?.id);
  expect(new Set(messages[1]?.toolCalls?.map(({ id }) => id)).size).toBe(2);
});

test('tools as JSON text, bare functions, and under functions', () => {
  const bare = { name: 'look' };
  const wrapped = ['{"type":"function","function":{"name":"look"}}'];
  for (const row of [
    { tools: [bare] },
    { tools: JSON.stringify([bare]) },
    { tools: [JSON.stringify(bare)] },
    { functions: [bare] },
  ]) {
    expect(promptOf({ prompt: 'a', ...row }).tools).toEqual(wrapped);
  }
});

test('turns: last refuses what it cannot give, by name', () => {
  const reasonOf = (row: unknown) => {
    const result = read(row, { turns: 'last' });
    return result.kind === 'rejected' ? result.reason : 'prompt';
  };
  expect(reasonOf({ turns: ['a', 'b'] })).toBe('no-given-answer');
  expect(reasonOf({ turns: ['a'] })).toBe('prompt');
  const given = (answer: object) => ({
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', ...answer },
      { role: 'user', content: 'b' },
    ],
  });
  expect(reasonOf(given({ content: ' ' }))).toBe('empty-content');
  expect(reasonOf(given({ content: '', tool_calls: [{ id: '1' }] }))).toBe('bad-tool-call');
  expect(read(given({ content: '', tool_calls: [{ id: '1' }] })).kind).toBe('prompt');
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as unknown;
  expect(reasonOf(given({ content: '', tool_calls: [{ name: 'f', arguments: deep }] }))).toBe('bad-tool-call');
  expect(read(given({ content: '', tool_calls: [{ name: 'f', arguments: deep }] })).kind).toBe('prompt');
});

test('columns: names, dotted ways, entries of lists; what is named is all that is looked at', () => {
  const row = {
    data: { question: 'q', 'a.b': 'dotted' },
    sys: 's',
    prompt: 'other',
    list: [{ v: 'first' }],
    functions: [{ name: 'f' }],
  };
  const texts = (columns: RowOptions['columns']) => promptOf(row, { columns }).messages.map(({ content }) => content);
  expect(texts({ prompt: 'data.question', system: 'sys' })).toEqual(['s', 'q']);
  expect(texts({ prompt: 'list.0.v' })).toEqual(['first']);
  expect(texts({ instruction: 'data.question', input: 'sys' })).toEqual(['q\n\ns']);
  expect(promptOf({ 'a.b': 'whole name' }, { columns: { prompt: 'a.b' } }).messages[0]?.content).toBe('whole name');
  expect(promptOf({ conv: '[{"from":"human","value":"x"}]' }, { columns: { messages: 'conv' } }).messages).toHaveLength(1);
  for (const prompt of ['data.answer', '__proto__.x', 'constructor.name', 'data.question.length']) {
    expect(read(row, { columns: { prompt } })).toMatchObject({ kind: 'rejected', reason: 'unknown-shape' });
  }
});

test('instruction and input, and parts that are text', () => {
  expect(promptOf({ instruction: 'Translate.', input: ' ', output: 'x' }).messages[0]?.content).toBe('Translate.');
  expect(promptOf({ instruction: 'Translate.', input: 'Fluss' }).messages[0]?.content).toBe('Translate.\n\nFluss');
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b' },
  ];
  expect(promptOf({ messages: [{ role: 'user', content: parts }] }).messages[0]?.content).toBe('a\nb');
  expect(read({ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] })).toMatchObject({
    reason: 'content-not-text',
    detail: 'messages[0] has a part 1 that is of type image_url',
  });
});
