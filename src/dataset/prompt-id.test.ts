import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Message } from '../base/conversation.ts';
import { AerieError } from '../base/errors.ts';
import { countTurns } from '../shard/walk-conversation.ts';
import { computePromptId, makePrompt, parsePromptLine, renderCanonicalText, renderPromptLine } from './prompt-id.ts';
import { readRow } from './read-row.ts';

const messages: readonly Message[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Wie heißt der See? 😀' },
];

test('the canonical text and the id are what they were in the first version', () => {
  const text =
    '{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Wie heißt der See? 😀"}],"tools":[]}';
  expect(renderCanonicalText(messages)).toBe(text);
  // sha256 of that text in base32, from another implementation.
  expect(computePromptId(messages)).toBe('bu5u23jh2hj3kf6if4ed2vxzzw');
});

test('the id does not depend on the key order, further keys or the shape of the row', () => {
  const swapped = messages.map(({ role, content }) => ({ weight: 1, content, role }));
  expect(computePromptId(swapped)).toBe(computePromptId(messages));
  const shapes = [
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'x' },
        { role: 'user', content: 'b' },
      ],
    },
    {
      conversations: [
        { from: 'human', value: 'a' },
        { from: 'gpt', value: 'y' },
        { from: 'human', value: 'b' },
      ],
      id: 4,
    },
    { turns: ['a', 'b'], category: 'writing' },
  ];
  const ids = shapes.map((row) => {
    const read = readRow(new TextEncoder().encode(JSON.stringify(row)));
    return read.kind === 'prompt' ? read.prompt.id : read.reason;
  });
  expect(new Set(ids)).toEqual(
    new Set([
      computePromptId([
        { role: 'user', content: 'a' },
        { role: 'user', content: 'b' },
      ]),
    ]),
  );
});

test('a different order, role or character is a different prompt', () => {
  const ids = [
    messages,
    [...messages].reverse(),
    messages.map((message) => ({ ...message, role: 'user' as const })),
    messages.map((message) => ({ ...message, content: `${message.content} ` })),
  ].map((messages) => computePromptId(messages));
  expect(new Set(ids).size).toBe(ids.length);
});

test('a stored line gives back the prompt, one line each', () => {
  const content = fc.string({ unit: 'grapheme', minLength: 1 });
  fc.assert(
    fc.property(fc.array(content, { minLength: 1, maxLength: 5 }), (texts) => {
      const prompt = makePrompt(texts.map((text) => ({ role: 'user', content: text })));
      const line = renderPromptLine(prompt);
      expect(line).not.toContain('\n');
      expect(parsePromptLine(`${line}\n`)).toEqual(prompt);
      expect(countTurns(prompt.messages)).toBe(texts.length);
    }),
  );
});

test('a stored line that was changed is refused', () => {
  const line = renderPromptLine(makePrompt(messages));
  for (const wrong of [line.replace('brief', 'long'), line.slice(0, -1), '', '{}', '{"id":"a","messages":[3]}', 'null']) {
    expect(() => parsePromptLine(wrong)).toThrow(AerieError);
  }
});
