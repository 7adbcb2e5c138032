/** Reasoning and tool calls out of raw text, by family; what cannot be read stays where it is. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AnswerFormat, answerFormatOf, type CallSyntax } from './answer-format.ts';
import { looksLikeCall, readRawAnswer } from './raw-answer.ts';

const facts = (model: string, reasoningParser = '', toolCallParser = '') => ({ model, reasoningParser, toolCallParser });
const think = { open: '<think>', close: '</think>' };

test.each<[string, string, string, AnswerFormat | RegExp]>([
  ['moonshotai/Kimi-K2.5', '', '', { thinking: think, calls: 'kimi' }],
  ['Kimi-VL-A3B-Thinking', '', '', { thinking: { open: '◁think▷', close: '◁/think▷' }, calls: undefined }],
  ['Qwen/Qwen3-8B', '', '', { thinking: think, calls: 'hermes' }],
  ['Qwen2.5-7B-Instruct', '', '', { thinking: undefined, calls: 'hermes' }],
  ['deepseek-ai/DeepSeek-R1-0528', '', '', { thinking: think, calls: 'deepseek-v3' }],
  ['DeepSeek-V3-0324', '', '', { thinking: undefined, calls: 'deepseek-v3' }],
  ['DeepSeek-V3.1', '', '', { thinking: think, calls: 'deepseek-v3.1' }],
  ['DeepSeek-V3.2', '', '', { thinking: undefined, calls: undefined }],
  ['my-model', '', '', { thinking: undefined, calls: undefined }],
  ['my-model', 'kimi_k2', 'kimi_k2', { thinking: think, calls: 'kimi' }],
  ['Qwen3-8B', 'deepseek-r1', 'qwen3_coder', { thinking: think, calls: undefined }],
  ['gpt-oss-120b', 'gpt-oss', 'gpt-oss', /--reasoning-parser gpt-oss is not known/],
  ['m', '__proto__', '', /__proto__ is not known/],
])('%s, reasoning by "%s", calls by "%s"', (model, reasoning, calls, expected) => {
  const format = answerFormatOf(facts(model, reasoning, calls));
  if (expected instanceof RegExp) expect(format).toMatch(expected);
  else expect(format).toEqual(expected);
});

describe('reasoning', () => {
  test.each([
    ['opened by the answer', '', '<think>a</think>b', 'a', 'b'],
    ['with blanks about it', '', '\n<think>\na\n</think>\n\nb\n', 'a', 'b'],
    ['opened by the prompt', '…<think>\n', 'a</think>b', 'a', 'b'],
    ['opened by both', '…<think>', '<think>a</think>b', 'a', 'b'],
    ['opened by neither, and closed', '', 'a</think>b', 'a', 'b'],
    ['cut before it is closed', '…<think>', 'a', 'a', ''],
    ['cut, opened by the answer', '', '<think>a', 'a', ''],
    ['switched off by the prompt', '…<think></think>', 'a </think> b', '', 'a </think> b'],
    ['switched off, and begun all the same', '…<think></think>', '<think>a</think>b', 'a', 'b'],
    ['none', '', ' b ', '', ' b '],
    ['only the first closing mark counts', '', '<think>a</think>b</think>c', 'a', 'b</think>c'],
    ['an opening mark in mid-text opens nothing', '', 'b <think> c', '', 'b <think> c'],
  ])('%s', (_, prompt, raw, reasoning, text) => {
    const format = { thinking: think, calls: undefined };
    expect(readRawAnswer(raw, { format, prompt, hasTools: false })).toEqual({ reasoning, text, toolCalls: [] });
  });
});

const kimi = (...calls: string[]) => `<|tool_calls_section_begin|>${calls.join('')}<|tool_calls_section_end|>`;
const kimiCall = (id: string, given: string) => `<|tool_call_begin|>${id}<|tool_call_argument_begin|>${given}<|tool_call_end|>`;
const deepseek = (...calls: string[]) => `<｜tool▁calls▁begin｜>${calls.join('\n')}<｜tool▁calls▁end｜>`;
const v3Call = (name: string, given: string) =>
  `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${given}\n\`\`\`<｜tool▁call▁end｜>`;
const v31Call = (name: string, given: string) => `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${given}<｜tool▁call▁end｜>`;
const hermesCall = (json: string) => `<tool_call>\n${json}\n</tool_call>`;

function read(raw: string, calls: CallSyntax) {
  return readRawAnswer(raw, { format: { thinking: undefined, calls }, prompt: '', hasTools: true });
}

describe('tool calls', () => {
  const BIG = '{"n": 12345678901234567890, "q": "a\\n b"}';

  test('of Kimi: name and number in the id, arguments kept as they were written', () => {
    const raw = `I look. ${kimi(kimiCall('functions.get_weather:0', BIG), ` ${kimiCall('search:1', '{}')} `)}`;
    expect(read(raw, 'kimi')).toEqual({
      reasoning: '',
      text: 'I look.',
      toolCalls: [
        { id: 'functions.get_weather:0', name: 'get_weather', arguments: BIG },
        { id: 'search:1', name: 'search', arguments: '{}' },
      ],
    });
  });

  test('of DeepSeek, both ways', () => {
    const call = { id: 'call-1', name: 'f', arguments: BIG };
    const second = { id: 'call-2', name: 'g.h', arguments: '{}' };
    const found = { reasoning: '', text: 'so', toolCalls: [call, second] };
    expect(read(`so${deepseek(v3Call('f', BIG), v3Call('g.h', '{}'))}`, 'deepseek-v3')).toEqual(found);
    expect(read(`so\n${deepseek(v31Call('f', BIG), v31Call('g.h', '{}'))}`, 'deepseek-v3.1')).toEqual(found);
  });

  test('of Hermes and Qwen, with text before and behind', () => {
    const raw = `so ${hermesCall('{"name": "f", "arguments": {"a": [1]}}')}\n${hermesCall('{"name": "g"}')} done`;
    const toolCalls = [
      { id: 'call-1', name: 'f', arguments: '{"a":[1]}' },
      { id: 'call-2', name: 'g', arguments: '{}' },
    ];
    expect(read(raw, 'hermes')).toEqual({ reasoning: '', text: 'so\ndone', toolCalls });
  });

  test('a section that the answer does not close is read where its calls are whole', () => {
    const raw = kimi(kimiCall('f:0', '{}')).replace('<|tool_calls_section_end|>', '');
    expect(read(raw, 'kimi').toolCalls).toHaveLength(1);
  });

  test.each<[string, CallSyntax, string]>([
    ['cut inside the arguments', 'kimi', `a${kimi(kimiCall('f:0', '{}')).slice(0, -40)}`],
    ['an id without a number', 'kimi', kimi(kimiCall('functions.f', '{}'))],
    ['arguments that are a list', 'kimi', kimi(kimiCall('f:0', '[1]'))],
    ['arguments that are no JSON', 'kimi', kimi(kimiCall('f:0', '{a: 1}'))],
    ['two arguments in one call', 'kimi', kimi(kimiCall('f:0', '{}<|tool_call_argument_begin|>{}'))],
    ['one of two wrong', 'kimi', kimi(kimiCall('f:0', '{}'), kimiCall('g', '{}'))],
    ['an empty section', 'kimi', kimi()],
    ['words between the calls', 'kimi', kimi(kimiCall('f:0', '{}'), 'and', kimiCall('g:1', '{}'))],
    ['no name', 'hermes', hermesCall('{"arguments": {}}')],
    ['not JSON', 'hermes', hermesCall('f(1)')],
    ['never closed', 'hermes', '<tool_call>{"name":"f","arguments":{}}'],
    ['a second one that is cut', 'hermes', `${hermesCall('{"name":"f","arguments":{}}')} <tool_call>{"na`],
    ['another kind of call', 'deepseek-v3', deepseek(v3Call('f', '{}').replace('function', 'code'))],
    ['no fence', 'deepseek-v3', deepseek(v31Call('function', 'f {}'))],
    ['no name at all', 'deepseek-v3.1', deepseek(v31Call(' ', '{}'))],
  ])('%s: stays text, and looks like a call', (_, syntax, raw) => {
    expect(read(raw, syntax)).toEqual({ reasoning: '', text: raw, toolCalls: [] });
    expect(looksLikeCall(raw)).toBe(true);
  });

  test('without tools, what looks like a call is text', () => {
    const raw = hermesCall('{"name": "f", "arguments": {}}');
    const format = { thinking: undefined, calls: 'hermes' } as const;
    expect(readRawAnswer(raw, { format, prompt: '', hasTools: false })).toEqual({ reasoning: '', text: raw, toolCalls: [] });
  });

  test('arguments nested without end are no call, and no exception', () => {
    const deep = `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    for (const raw of [hermesCall(`{"name":"f","arguments":${deep}}`), hermesCall(deep)])
      expect(() => read(raw, 'hermes')).not.toThrow();
  });
});

test('whatever an answer is made of, nothing of it is lost and nothing throws', () => {
  const piece = fc.constantFrom(
    ...['<think>', '</think>', '<tool_call>', '</tool_call>', '{"name":"f","arguments":{}}', 'functions.f:0', '{}', 'word', '\n'],
    ...['<|tool_calls_section_begin|>', '<|tool_calls_section_end|>', '<|tool_call_begin|>', '<|tool_call_end|>'],
    ...[
      '<|tool_call_argument_begin|>',
      '<｜tool▁calls▁begin｜>',
      '<｜tool▁call▁begin｜>',
      '<｜tool▁sep｜>',
      '<｜tool▁call▁end｜>',
    ],
  );
  const syntax = fc.constantFrom<CallSyntax>('hermes', 'kimi', 'deepseek-v3', 'deepseek-v3.1');
  const words = (text: string) => text.split('word').length - 1;
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), syntax, (pieces, calls) => {
      const raw = pieces.join('');
      const { reasoning, text, toolCalls } = readRawAnswer(raw, {
        format: { thinking: think, calls },
        prompt: '',
        hasTools: true,
      });
      expect(words(reasoning) + words(text)).toBe(words(raw));
      if (toolCalls.length === 0 && reasoning === '')
        expect(text.length).toBeGreaterThanOrEqual(raw.trim().length - '<think></think>'.length);
    }),
  );
});
