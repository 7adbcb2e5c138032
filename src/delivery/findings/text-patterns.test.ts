import { describe, expect, it } from 'vitest';
import { indexBenchmarks, parseBenchmarks } from './benchmark-overlap.ts';
import { isRefusal } from './refusals.ts';
import { hasTemplateMarker } from './template-markers.ts';

describe('a refusal', () => {
  it.each([
    "I'm sorry, but I can't assist with that request.",
    'I’m sorry, I cannot help you with this.',
    'Sorry, but I am unable to provide that.',
    'I cannot provide instructions for that.',
    'I apologize, but I cannot create such content.',
    'Unfortunately, I am not able to open links.',
    'As an AI language model, I cannot have opinions.',
    'Es tut mir leid, aber ich kann Ihnen dabei nicht helfen.',
    'Je suis désolé, mais je ne peux pas vous aider.',
    'Lo siento, pero no puedo ayudarte con eso.',
    'Desculpe, mas não posso ajudar com isso.',
    'Mi dispiace, ma non posso aiutarti.',
    'Извините, но я не могу помочь с этим.',
    '很抱歉,我不能提供这些信息。',
    '我无法提供该内容。',
    '申し訳ありませんが、そのご要望にはお答えできません。',
    '죄송하지만 도와드릴 수 없습니다.',
  ])('is %j', (answer) => expect(isRefusal(answer)).toBe(true));

  it.each([
    "I'm sorry to hear that. Here is what you can do:",
    'Sorry for the confusion! The answer is 4.',
    "I can't believe how well this works: 4.",
    'You cannot divide by zero, because …',
    'A good customer letter begins: "I\'m sorry, I can\'t …"',
    'Es tut mir leid, das zu hören. Versuchen Sie es so:',
    '抱歉听到这个消息。你可以这样做:',
    '',
  ])('is not %j', (answer) => expect(isRefusal(answer)).toBe(false));
});

describe('a template marker', () => {
  it('is what templates write, and the special tokens of the own tokenizer', () => {
    for (const text of ['a<|im_end|>', '[INST] b', '<start_of_turn>user', 'x<｜User｜>y'])
      expect(hasTemplateMarker(text)).toBe(true);
    for (const text of ['a < b', '[1, 2]', '<div>', 'use <s> for strike-through']) expect(hasTemplateMarker(text)).toBe(false);
    expect(hasTemplateMarker('use <s> for strike-through', ['<s>'])).toBe(true);
    expect(hasTemplateMarker('end', ['end'])).toBe(true);
  });
});

describe('benchmark prompts', () => {
  const long = 'Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May.';
  const medium = 'Write a limerick about a cat in nine words.';
  const list = indexBenchmarks([long, medium, 'What is 2+2?']);

  it('overlap by thirteen words in a row, whole where they are shorter, and as the whole message where they are short', () => {
    expect(list.overlaps(`Solve: ${long.toLowerCase().replaceAll(',', '')} How many?`)).toBe(true);
    expect(list.overlaps('she sold half as many clips in May')).toBe(false);
    expect(list.overlaps(`Please: ${medium}`)).toBe(true);
    expect(list.overlaps('Write a limerick about a cat in ten words.')).toBe(false);
    expect(list.overlaps('what is 2 + 2')).toBe(true);
    expect(list.overlaps('What is 2+2? And what is 3+3, and why is that so?')).toBe(false);
    expect(list.overlaps('')).toBe(false);
    expect(indexBenchmarks([]).overlaps(long)).toBe(false);
  });

  it('are read from JSON lines, a JSON array and plain text, and what holds none is counted', () => {
    const rows = [
      { question_id: 81, turns: ['first', 'second'] },
      { question: 'q', answer: 'never this' },
      {
        messages: [
          { role: 'system', content: 'no' },
          { role: 'user', content: 'm' },
        ],
      },
      {
        conversations: [
          { from: 'human', value: 'h' },
          { from: 'gpt', value: 'no' },
        ],
      },
      'bare',
      { other: 1 },
    ];
    const expected = { prompts: ['first', 'second', 'q', 'm', 'h', 'bare'], unread: 1 };
    expect(parseBenchmarks(rows.map((row) => JSON.stringify(row)).join('\n'))).toEqual(expected);
    expect(parseBenchmarks(JSON.stringify(rows, undefined, 2))).toEqual(expected);
    expect(parseBenchmarks('one prompt\r\n\n[another] one\n{not json\n')).toEqual({
      prompts: ['one prompt', '[another] one', '{not json'],
      unread: 0,
    });
  });
});
