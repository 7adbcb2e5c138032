/** What is asked next, over plain conversations, given turns and tool results; and that asking step by step ends. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Message } from '../base/conversation.ts';
import { countTurns, findNextTurn, type GivenAnswer, joinConversation } from './walk-conversation.ts';

const system: Message = { role: 'system', content: 's' };
const user = (content: string): Message => ({ role: 'user', content });
const given = (content: string): Message => ({ role: 'assistant', content });
const result = (content: string, name?: string): Message => ({ role: 'tool', content, ...(name === undefined ? {} : { name }) });
const says = (text: string): GivenAnswer => ({ text, toolCalls: [] });
const calls = (...names: string[]): GivenAnswer => ({
  text: '',
  toolCalls: names.map((name, at) => ({ id: `call-${name}-${at}`, name, arguments: '{}' })),
});
const asked = (messages: readonly Message[], answers: readonly GivenAnswer[]) => {
  const next = findNextTurn(messages, answers);
  return next.kind === 'ask' ? next.messages.map(({ role, content }) => `${role}:${content}`) : next;
};

test('each user message is asked with everything before it, and with the model’s own answers', () => {
  const prompt = [system, user('a'), user('b')];
  expect(countTurns(prompt)).toBe(2);
  expect(asked(prompt, [])).toEqual(['system:s', 'user:a']);
  expect(asked(prompt, [says('A')])).toEqual(['system:s', 'user:a', 'assistant:A', 'user:b']);
  expect(asked(prompt, [says('A'), says('B')])).toEqual({ kind: 'over', isMissingToolResult: false });
  expect(joinConversation(prompt, [says('A'), says('B')]).map(({ content }) => content)).toEqual(['s', 'a', 'A', 'b', 'B']);
});

test('a conversation that ended before its last turn is joined up to its last answer', () => {
  const prompt = [system, user('a'), user('b'), result('r'), user('c')];
  const said = (answers: readonly GivenAnswer[]) => joinConversation(prompt, answers).map(({ content }) => content);
  expect(said([])).toEqual([]);
  expect(said([says('A')])).toEqual(['s', 'a', 'A']);
  expect(said([says('A'), calls('look')])).toEqual(['s', 'a', 'A', 'b', '']);
});

test('a given answer is not asked for again', () => {
  const prompt = [user('a'), given('A'), user('b')];
  expect(countTurns(prompt)).toBe(1);
  expect(asked(prompt, [])).toEqual(['user:a', 'assistant:A', 'user:b']);
  expect(asked(prompt, [says('B')])).toMatchObject({ kind: 'over' });
});

test('the calls of an answer take the next results of the source, and carry their own ids', () => {
  const prompt = [user('weather?'), result('rain', 'look'), result('wind', 'look'), user('thanks')];
  expect(countTurns(prompt)).toBe(4);
  const next = findNextTurn(prompt, [calls('look')]);
  expect(next).toMatchObject({
    kind: 'ask',
    messages: [{}, { role: 'assistant' }, { content: 'rain', toolCallId: 'call-look-0' }],
  });
  expect(asked(prompt, [calls('look', 'look')])).toEqual(['user:weather?', 'assistant:', 'tool:rain', 'tool:wind']);
  expect(asked(prompt, [calls('look'), calls('look'), says('storm')])).toEqual([
    ...['user:weather?', 'assistant:', 'tool:rain', 'assistant:', 'tool:wind', 'assistant:storm', 'user:thanks'],
  ]);
});

test('results that no call asks for are passed over', () => {
  expect(asked([user('weather?'), result('rain'), user('thanks')], [says('no idea')])).toEqual([
    ...['user:weather?', 'assistant:no idea', 'user:thanks'],
  ]);
});

test('a call without a result, or with another tool’s, ends the conversation', () => {
  const over = { kind: 'over', isMissingToolResult: true };
  expect(asked([user('a'), user('b')], [calls('look')])).toEqual(over);
  expect(asked([user('a'), result('1', 'add'), user('b')], [calls('look')])).toEqual(over);
  expect(asked([user('a'), result('1', 'look')], [calls('look', 'look')])).toEqual(over);
});

test('given tool turns lead to one answer at the end', () => {
  const prompt = [user('a'), { ...given(''), toolCalls: [{ id: '1', name: 'look', arguments: '{}' }] }, result('rain')];
  expect(countTurns(prompt)).toBe(1);
  expect(asked(prompt, [])).toEqual(['user:a', 'assistant:', 'tool:rain']);
  expect(asked(prompt, [says('rain')])).toMatchObject({ kind: 'over' });
});

test('answering whatever is asked always ends, after at most as many answers as were counted', () => {
  const message = fc.constantFrom(user('u'), given('g'), result('r'), result('r', 'look'));
  const answer = fc.constantFrom(says('t'), calls('look'), calls('look', 'look'), calls('other'));
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), fc.infiniteStream(answer), (messages, stream) => {
      const answers: GivenAnswer[] = [];
      while (findNextTurn(messages, answers).kind === 'ask') {
        answers.push(stream.next().value);
        expect(answers.length).toBeLessThanOrEqual(countTurns(messages));
      }
    }),
  );
});
