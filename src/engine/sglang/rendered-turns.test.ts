/**
 * SGLang without ids in a chat: what is rendered, sent and read in its stead, and what is not. Kimi-K2.5 on SGLang 0.5.9 is
 * the case that it is for: no `tokenizer.json`, and a tokenizer in Python that writes the tools.
 */
import { describe, expect, test } from 'vitest';
import type { Message } from '../../base/conversation.ts';
import type { FoundTemplate } from '../../base/prompt-template.ts';
import { openPromptTemplate } from '../../tokens/prompt-template.ts';
import { type PreparedRequest, type ServerFacts, type TurnRequest, UNKNOWN_FACTS } from '../dialect.ts';
import type { PromptKind } from '../rendered-prompt.ts';
import { renderedTurns } from './rendered-turns.ts';
import { sglang } from './sglang.ts';

/** The form of Kimi's template: roles in marks, a declaration of tools, thinking that is opened or closed for the model. */
const KIMI_TEMPLATE = `{%- if tools -%}<|im_system|>tool_declare<|im_middle|>
{%- if tools_ts_str -%}{{ tools_ts_str }}{%- else -%}{{ tools | tojson }}{%- endif -%}<|im_end|>{%- endif -%}
{%- for message in messages -%}<|im_{{ message.role }}|>{{ message.role }}<|im_middle|>{{ message.content }}
{%- for call in message.tool_calls or [] -%}[{{ call.id }} {{ call.function.arguments | tojson }}]{%- endfor -%}<|im_end|>{%- endfor -%}
{%- if add_generation_prompt -%}<|im_assistant|>assistant<|im_middle|>
{%- if thinking is defined and thinking is false -%}<think></think>{%- else -%}<think>{%- endif -%}{%- endif -%}`;
const KIMI_CONFIG = {
  auto_map: { AutoTokenizer: ['tokenization_kimi.TikTokenTokenizer', null] },
  bos_token: '[BOS]',
  eos_token: '[EOS]',
};
const KIMI = openPromptTemplate({ config: KIMI_CONFIG, jinja: KIMI_TEMPLATE });
const PLAIN = openPromptTemplate({ config: {}, jinja: KIMI_TEMPLATE });
const at = (engineVersion: string, more: Partial<ServerFacts> = {}): ServerFacts => ({
  ...{ ...UNKNOWN_FACTS, model: 'moonshotai/Kimi-K2.5', engineVersion, stopIds: [9] },
  ...more,
});
const kind = (template: FoundTemplate, more: Partial<PromptKind> = {}): PromptKind => ({
  ...{ template, hasTools: false, extraBody: {} },
  ...more,
});

const ASK: Message = { role: 'user', content: 'what is é 漢?' };
const TOOL = '{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}';
const turnOf = (change: Partial<TurnRequest> = {}): TurnRequest => ({
  ...{ model: 'kimi', messages: [ASK], tools: [], seed: 5, templateKwargs: {}, extraBody: {} },
  sampling: { temperature: 0.6, topP: 0.95, topK: 0, maxTokens: 8, seed: 1, stop: ['END'] },
  ...change,
});
const prepared = (text: string, change: Partial<TurnRequest> = {}): PreparedRequest => ({
  ...turnOf(change),
  prompt: { text, ids: [1, 2, 3] },
});

describe('Kimi-K2.5 on SGLang 0.5.9', () => {
  test('exact without tools, where its template is at hand; not with tools, and why', () => {
    expect(sglang.exactness(at('0.5.9'), kind(KIMI))).toMatchObject({
      exact: true,
      because: '',
      how: expect.stringContaining('/tokenize') as string,
    });
    expect(sglang.exactness(at('0.5.9'))).toMatchObject({
      exact: false,
      because: expect.stringContaining('not at hand') as string,
    });
    expect(sglang.exactness(at('0.5.9'), kind(KIMI, { hasTools: true }))).toEqual({
      exact: false,
      how: 'text only, no token ids',
      because:
        'SGLang 0.5.9 gives no token ids with a chat, and its prompt is not rendered here: the tokenizer of its model is Python code, which writes the definitions of tools before the template sees them',
    });
  });

  test('its prompt, with thinking opened or closed by the keyword of the request', () => {
    const open = '<|im_user|>user<|im_middle|>what is é 漢?<|im_end|><|im_assistant|>assistant<|im_middle|><think>';
    expect(renderedTurns.renderPrompt(turnOf(), at('0.5.9'), KIMI)).toEqual({ text: open });
    const closed = { text: `${open}</think>` };
    expect(renderedTurns.renderPrompt(turnOf({ templateKwargs: { thinking: false } }), at('0.5.9'), KIMI)).toEqual(closed);
    const laidOver = turnOf({ templateKwargs: { thinking: true }, extraBody: { chat_template_kwargs: { thinking: false } } });
    expect(renderedTurns.renderPrompt(laidOver, at('0.5.9'), KIMI)).toEqual(closed);
  });

  test('its answer: thinking that the prompt opened, and what looks like calls stays text where no tools were offered', () => {
    const text = 'Hm.</think>It is <|tool_call_begin|>é.';
    expect(read(text, prepared('…<think>'))).toMatchObject({
      reasoning: 'Hm.',
      text: 'It is <|tool_call_begin|>é.',
      toolCalls: [],
      finish: 'stop',
    });
  });
});

test.each([
  ['0.5.3.post3', false],
  ['0.5.4', true],
  ['0.5.9', true],
  ['0.5.12.post1', true],
  ['0.5.13', false],
  ['0.5.18', false],
  ['', false],
])('SGLang %s is asked so: %s', (version, isNeeded) => {
  expect(renderedTurns.isNeeded(at(version))).toBe(isNeeded);
});

describe('what is asked as a chat all the same', () => {
  test.each<[Partial<PromptKind>, Partial<ServerFacts>, RegExp]>([
    [{ template: { kind: 'none', because: 'there is none' } }, {}, /^there is none$/],
    [{ extraBody: { reasoning_effort: 'high' } }, {}, /extra-body has reasoning_effort/],
    [{ extraBody: { __proto__x: 1 } }, {}, /extra-body has __proto__x/],
    [{}, { reasoningParser: 'gpt-oss' }, /--reasoning-parser gpt-oss/],
    [{ hasTools: true }, { toolCallParser: 'pythonic' }, /--tool-call-parser pythonic writes tool calls is not known/],
    [{ hasTools: true }, { model: 'm' }, /how m writes tool calls/],
    [{ hasTools: true }, {}, /^$/],
    [{ extraBody: { min_tokens: 3, chat_template_kwargs: {}, frequency_penalty: 1 } }, {}, /^$/],
  ])('%j with %j: %s', (prompt, facts, because) => {
    expect(renderedTurns.whyNot(kind(PLAIN, prompt), at('0.5.9', facts))).toMatch(because);
  });
});

test('tools are given to the template as its version gives them: bare before 0.5.9, whole from then on', () => {
  const bare = '{"description": null, "name": "f", "parameters": {"type": "object"}, "strict": false}';
  const declared = (version: string) => renderedTurns.renderPrompt(turnOf({ tools: [TOOL] }), at(version), PLAIN);
  const begin = '<|im_system|>tool_declare<|im_middle|>';
  expect(declared('0.5.8')).toEqual({ text: expect.stringContaining(`${begin}[${bare}]<|im_end|>`) as string });
  const whole = `{"type": "function", "function": ${bare}}`;
  expect(declared('0.5.9')).toEqual({ text: expect.stringContaining(`${begin}[${whole}]<|im_end|>`) as string });
});

test('the arguments of given calls are objects for a template; what is no JSON is refused', () => {
  const given = (written: string): Message => ({
    role: 'assistant',
    content: '',
    toolCalls: [{ id: 'c', name: 'f', arguments: written }],
  });
  const render = (written: string) => renderedTurns.renderPrompt(turnOf({ messages: [ASK, given(written)] }), at('0.5.9'), PLAIN);
  expect(render('{"a":1}')).toEqual({ text: expect.stringContaining('[c {"a": 1}]') as string });
  expect(render('{')).toEqual({ refused: expect.stringContaining('not JSON') as string });
});

test('the prompt is tokenised as it stands, and ids are believed only where they agree with their count', () => {
  const { path, body } = renderedTurns.tokenize('a', 'kimi');
  expect([path, JSON.parse(body ?? '')]).toEqual(['/tokenize', { model: 'kimi', prompt: 'a', add_special_tokens: false }]);
  const tokens = (answer: object, status = 200) =>
    renderedTurns.readTokens({ status, body: JSON.stringify(answer) }, at('0.5.9', { vocabularySize: 100 }));
  expect(tokens({ tokens: [1, 99], count: 2, max_model_len: 5 })).toEqual([1, 99]);
  const wrong = [
    { tokens: [1, 2], count: 3 },
    { tokens: [], count: 0 },
    { tokens: [100], count: 1 },
    { tokens: [-1], count: 1 },
    { tokens: ['1'], count: 1 },
    { tokens: [[1]], count: 1 },
    {},
  ];
  for (const answer of wrong) expect(tokens(answer)).toBeUndefined();
  expect(tokens({ tokens: [1], count: 1 }, 500)).toBeUndefined();
});

test('the turn is sent as ids, with its sampling by the names of /generate; special tokens stay only where tools are offered', () => {
  const sent = (change: Partial<TurnRequest>) => {
    const { path, body } = renderedTurns.render(prepared('…', change));
    expect(path).toBe('/generate');
    return JSON.parse(body ?? '') as { input_ids: number[]; sampling_params: Record<string, unknown> };
  };
  const extraBody = { min_tokens: 3, seed: 7, chat_template_kwargs: { thinking: true } };
  const plain = sent({ extraBody });
  expect(plain.input_ids).toEqual([1, 2, 3]);
  const asked = { max_new_tokens: 8, temperature: 0.6, top_p: 0.95, top_k: -1, min_p: 0, repetition_penalty: 1, stop: ['END'] };
  expect(plain.sampling_params).toEqual({ ...asked, min_new_tokens: 3, sampling_seed: 7 });
  expect(sent({ tools: [TOOL] }).sampling_params).toEqual({ ...asked, sampling_seed: 5, skip_special_tokens: false });
});

const answerOf = (text: string, change: object = {}) => ({
  text,
  output_ids: [5, 6, 9],
  meta_info: { finish_reason: { type: 'stop', matched: 9 }, prompt_tokens: 3, completion_tokens: 3, cached_tokens: 2, ...change },
});

function outcomeOf(body: unknown, turn: PreparedRequest, status = 200) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return renderedTurns.read({ status, body: text, retryAfterMs: 0 }, at('0.5.9'), turn);
}

function read(text: string, turn: PreparedRequest, change: object = {}) {
  const outcome = outcomeOf(answerOf(text, change), turn);
  if (outcome.kind !== 'completed') throw new Error(outcome.kind);
  return outcome.reply;
}

test('calls end an answer that stopped; one that was cut stays cut', () => {
  const calls =
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>';
  const toolCalls = [{ id: 'functions.f:0', name: 'f', arguments: '{}' }];
  const turn = prepared('…<think></think>', { tools: [TOOL] });
  const whole = {
    promptIds: [1, 2, 3],
    outputIds: [5, 6, 9],
    usage: { prompt: 3, completion: 3, cached: 2 },
    endsWithStopId: true,
  };
  expect(read(`so${calls}`, turn)).toMatchObject({ ...whole, text: 'so', toolCalls, finish: 'tool-calls' });
  const ending = { finish_reason: { type: 'length', length: 3 } };
  const cut = outcomeOf({ ...answerOf(calls, ending), output_ids: [5, 6, 7] }, turn);
  expect(cut).toMatchObject({ kind: 'completed', reply: { toolCalls, finish: 'length' } });
});

test.each<[string, unknown, number, object]>([
  ['counts that differ', answerOf('a', { completion_tokens: 4 }), 200, { kind: 'malformed' }],
  ['another prompt', answerOf('a', { prompt_tokens: 4 }), 200, { kind: 'malformed' }],
  ['no ids', { ...answerOf('a'), output_ids: undefined }, 200, { kind: 'malformed' }],
  ['an abort', answerOf('a', { finish_reason: { type: 'abort', message: 'x' } }), 200, { kind: 'malformed' }],
  ['not JSON', '<html>', 200, { kind: 'malformed' }],
  ['no path', '{"detail":"Not Found"}', 404, { kind: 'unauthorised', because: expect.stringContaining('proxy') as string }],
  [
    'too long',
    { error: { message: "The input (9000 tokens) is longer than the model's context length (8192 tokens)." } },
    400,
    { kind: 'refused', reason: 'longer-than-context' },
  ],
  ['a full queue', { error: { message: 'The request queue is full.' } }, 503, { kind: 'overloaded' }],
])('%s is no answer', (_, body, status, expected) => {
  expect(outcomeOf(body, prepared('…'), status)).toMatchObject(expected);
});
