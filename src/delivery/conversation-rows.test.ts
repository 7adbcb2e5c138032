import { describe, expect, it } from 'vitest';
import { continuingTurns, sampleRecord, sampleTurn } from '../../test/support/sample-records.ts';
import { renderConversationRow } from './conversation-rows.ts';

const plain = { format: 'specforge', idPrefix: '', withReasoning: false } as const;
const reasonOf = (change: Parameters<typeof sampleRecord>[0]) => {
  const result = renderConversationRow(sampleRecord(change), plain);
  return result.kind === 'left-out' ? result.reason : 'kept';
};

describe('conversation rows', () => {
  it('put each answer after its question, behind the system message', () => {
    const record = sampleRecord({
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'one?' },
        { role: 'user', content: 'two?' },
      ],
      turns: continuingTurns([
        [20, 2],
        [21, 2],
      ]),
    });
    expect(renderConversationRow(record, { ...plain, idPrefix: 'B1/' })).toMatchObject({
      kind: 'row',
      row: {
        id: 'B1/abc',
        status: 'success',
        conversations: [
          { role: 'system', content: 'be brief' },
          { role: 'user', content: 'one?' },
          { role: 'assistant', content: 'answer 0' },
          { role: 'user', content: 'two?' },
          { role: 'assistant', content: 'answer 1' },
        ],
      },
    });
  });

  it('carry reasoning on every answer of a file that has any', () => {
    const turns = [sampleTurn({ reasoning: 'two and two' }), sampleTurn()];
    const result = renderConversationRow(sampleRecord({ turns }), { ...plain, withReasoning: true });
    const messages = result.kind === 'row' ? (result.row['conversations'] as Readonly<Record<string, unknown>>[]) : [];
    expect(messages.filter((message) => message['role'] === 'assistant').map((message) => message['reasoning_content'])).toEqual([
      'two and two',
      '',
    ]);
  });

  it.each([
    ['empty-content', { turns: [sampleTurn({ text: ' \n\u0085\u001c' })] }],
    ['empty-content', { messages: [{ role: 'user' as const, content: '' }] }],
    ['think-marker', { turns: [sampleTurn({ text: 'so </THINK> four' })] }],
    ['think-marker', { turns: [sampleTurn({ reasoning: '<think> two' })] }],
    ['unpaired-surrogate', { turns: [sampleTurn({ text: 'half \udc00' })] }],
    ['unpaired-surrogate', { messages: [{ role: 'user' as const, content: 'half \ud800 ' }] }],
    ['nul-character', { turns: [sampleTurn({ text: 'a\u0000b' })] }],
    ['message-order', { turns: [sampleTurn(), sampleTurn()], messages: [{ role: 'user' as const, content: 'one' }] }],
    ['message-order', { messages: [{ role: 'system' as const, content: 'only' }] }],
    ['tool-call', { turns: [sampleTurn({ toolCalls: [{ id: '1', name: 'f', arguments: '{}' }] })] }],
    ['kept', { messages: [{ role: 'user' as const, content: 'what is <think>?' }] }],
  ])('%s', (reason, change) => {
    expect(reasonOf(change)).toBe(reason);
  });

  const called = { turns: [sampleTurn({ toolCalls: [{ id: '1', name: 'f', arguments: '{}' }], finish: 'tool-calls' as const })] };
  const withSystem = {
    messages: [
      { role: 'system' as const, content: 'brief' },
      { role: 'user' as const, content: 'q' },
    ],
  };
  it.each([
    ['modelopt', 'tool-call', called],
    ['modelopt', 'tool-definitions', { tools: ['{}'] }],
    ['modelopt', 'kept', withSystem],
    ['automodel', 'kept', { ...called, tools: ['{}'] }],
    ['eagle', 'tool-call', called],
    ['eagle', 'system-message', withSystem],
    ['eagle', 'reasoning', { turns: [sampleTurn({ reasoning: 'hm' })] }],
    ['parquet', 'kept', { ...called, ...withSystem }],
  ] as const)('for %s: %s', (format, reason, change) => {
    const result = renderConversationRow(sampleRecord(change), { ...plain, format });
    expect(result.kind === 'left-out' ? result.reason : 'kept').toBe(reason);
  });
});
