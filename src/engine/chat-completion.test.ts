/** What a reply to a turn is taken for. Replies are untrusted: whatever comes, it is a value with a reason. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ChatStyle, errorText, outcomeOfStatus, RETURN_TOKEN_IDS, readChat, renderChat } from './chat-completion.ts';
import { type IdsPromise, type ServerFacts, type TurnRequest, UNKNOWN_FACTS } from './dialect.ts';

const FACTS: ServerFacts = { ...UNKNOWN_FACTS, model: 'm', engineVersion: '1', vocabularySize: 100, stopIds: [2] };

const TURN: TurnRequest = {
  model: 'm',
  tools: [],
  messages: [{ role: 'user', content: 'hello' }],
  sampling: { temperature: 0.6, topP: 0.9, topK: 0, maxTokens: 50, seed: 1, stop: [] },
  seed: 99,
  templateKwargs: { enable_thinking: false },
  extraBody: { min_p: 0.1, temperature: 0 },
};

const ASKED: ChatStyle = { idFields: RETURN_TOKEN_IDS };
const PROMISES = ['always', 'unknown', 'never'] as const;

interface Change {
  readonly choice?: object;
  readonly answer?: object;
  readonly message?: object;
  readonly outputIds?: readonly unknown[];
  readonly promptIds?: readonly unknown[];
}

function body({ choice, answer, message, outputIds = [10, 11, 2], promptIds = [1, 5] }: Change = {}): string {
  return JSON.stringify({
    prompt_token_ids: promptIds,
    choices: [
      { message: { content: 'hi', ...message }, token_ids: outputIds, finish_reason: 'stop', stop_reason: null, ...choice },
    ],
    usage: { prompt_tokens: promptIds.length, completion_tokens: outputIds.length },
    ...answer,
  });
}

const read = (text: string, facts = FACTS, maxTokens = 50, ids: IdsPromise = 'always') =>
  readChat({ status: 200, body: text, retryAfterMs: 0 }, { facts, maxTokens, ids });
const because = (text: string, facts = FACTS) => {
  const outcome = read(text, facts);
  return outcome.kind === 'malformed' ? outcome.because : `not malformed: ${outcome.kind}`;
};

test('a reply whose counts, ids and finish agree is an answer', () => {
  const message = { reasoning_content: 'hm', tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }] };
  const answer = { usage: { prompt_tokens: 2, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } } };
  expect(read(body({ message, answer }))).toEqual({
    kind: 'completed',
    reply: {
      promptIds: [1, 5],
      outputIds: [10, 11, 2],
      text: 'hi',
      reasoning: 'hm',
      toolCalls: [{ id: 'c', name: 'f', arguments: '{}' }],
      finish: 'stop',
      endsWithStopId: true,
      usage: { prompt: 2, completion: 3, cached: 1 },
    },
  });
});

test('calls are read with arguments as text or as a value, and each has an id; one without a name is no call', () => {
  const calls = (...tool_calls: unknown[]) => body({ message: { content: null, tool_calls } });
  const called = (given: object) => ({ function: { name: 'f', ...given } });
  expect(read(calls(called({ arguments: { a: [1] } }), { id: 'x', ...called({}) }))).toMatchObject({
    reply: {
      toolCalls: [
        { id: 'call-1', name: 'f', arguments: '{"a":[1]}' },
        { id: 'x', name: 'f', arguments: '{}' },
      ],
    },
  });
  const deep = body({ message: { tool_calls: [called({ arguments: 'DEEP' })] } });
  expect(because(deep.replace('"DEEP"', '['.repeat(100_000) + ']'.repeat(100_000)))).toContain(
    'arguments that cannot be written',
  );
  for (const wrong of [called({ name: '' }), {}, null, 3, { function: 'f' }])
    expect(because(calls(wrong))).toContain('a call in message.tool_calls has no name');
});

test('reasoning is read under both of its names, content may be null, and prompt ids may stand in the choice', () => {
  expect(read(body({ message: { reasoning: 'so', content: null } }))).toMatchObject({ reply: { reasoning: 'so', text: '' } });
  const inChoice = body({ answer: { prompt_token_ids: undefined }, choice: { prompt_token_ids: [1, 5] } });
  expect(read(inChoice)).toMatchObject({ kind: 'completed', reply: { promptIds: [1, 5] } });
});

test.each([
  ['not JSON', '<html>', '6 characters that are not JSON'],
  ['no choices', body({ answer: { choices: [] } }), 'no choices[0].message'],
  ['no message', body({ choice: { message: undefined } }), 'no choices[0].message'],
  ['content of another type', body({ message: { content: [1] } }), 'message.content is object'],
  ['no output ids', body({ choice: { token_ids: undefined } }), 'no token_ids'],
  ['empty output ids', body({ outputIds: [] }), 'token_ids is empty'],
  ['no prompt ids', body({ answer: { prompt_token_ids: null } }), 'no prompt_token_ids'],
  ['an id beyond the vocabulary', body({ outputIds: [10, 100] }), 'token_ids[1] is 100, the vocabulary has 100 ids'],
  ['a negative id', body({ outputIds: [-1, 2] }), 'token_ids[0] is -1'],
  ['half an id', body({ outputIds: [1.5, 2] }), 'token_ids[0] is 1.5'],
  ['an id that is text', body({ promptIds: ['1', 5] }), 'prompt_token_ids[0] is "1"'],
  [
    'more counted than given',
    body({ answer: { usage: { prompt_tokens: 2, completion_tokens: 4 } } }),
    'usage says 4 completion tokens',
  ],
  [
    'fewer prompt ids than counted',
    body({ answer: { usage: { prompt_tokens: 3, completion_tokens: 3 } } }),
    'usage says 3 prompt tokens',
  ],
  ['no usage', body({ answer: { usage: undefined } }), 'usage says -1 prompt tokens'],
  ['an unknown finish', body({ choice: { finish_reason: 'abort' } }), 'finish_reason "abort"'],
  ['no finish', body({ choice: { finish_reason: null } }), 'finish_reason null'],
])('%s is malformed, and the reason says so', (_what, text, reason) => {
  expect(because(text)).toContain(reason);
});

test('where the vocabulary is unknown, ids only have to be numbers that an id can be', () => {
  const facts = { ...FACTS, vocabularySize: 0 };
  expect(read(body({ outputIds: [200_000, 2] }), facts).kind).toBe('completed');
  expect(because(body({ outputIds: [2 ** 31, 2] }), facts)).toContain('token_ids[0] is 2147483648');
});

test('an answer that fills its cap without a stop id is cut, whatever the server calls it', () => {
  const full = body({ outputIds: [10, 11, 12] });
  expect(read(full, FACTS, 3)).toMatchObject({ reply: { finish: 'length', endsWithStopId: false } });
  expect(read(full, FACTS, 4)).toMatchObject({ reply: { finish: 'stop', endsWithStopId: false } });
  expect(read(body(), FACTS, 3)).toMatchObject({ reply: { finish: 'stop', endsWithStopId: true } });
  expect(read(body({ choice: { finish_reason: 'length' } }), FACTS)).toMatchObject({ reply: { finish: 'length' } });
  expect(read(body({ choice: { finish_reason: 'tool_calls' } }))).toMatchObject({ reply: { finish: 'tool-calls' } });
});

test('where the stop ids are unknown, the word of the server counts', () => {
  const facts = { ...FACTS, stopIds: [] };
  expect(read(body(), facts, 3)).toMatchObject({ reply: { endsWithStopId: true, finish: 'stop' } });
  for (const name of ['stop_reason', 'matched_stop']) {
    const met = (value: unknown) => read(body({ choice: { [name]: value } }), facts);
    expect(met('###')).toMatchObject({ reply: { endsWithStopId: false, finish: 'stop' } });
    expect(met(2)).toMatchObject({ reply: { endsWithStopId: true, finish: 'stop' } });
    expect(met(3)).toMatchObject({ reply: { endsWithStopId: false, finish: 'stop' } });
  }
});

test('SGLang’s ids stand in the choice, or beside log-probabilities in its meta_info', () => {
  const bare = { prompt_token_ids: undefined };
  const choice = { prompt_token_ids: [1, 5], token_ids: undefined };
  const logprobs = [10, 11, 2].map((id) => [-0.5, id, null]);
  const meta = body({ answer: bare, choice: { ...choice, meta_info: { output_token_logprobs: logprobs } } });
  expect(read(meta)).toMatchObject({ reply: { promptIds: [1, 5], outputIds: [10, 11, 2] } });
  expect(read(body({ answer: bare, choice: { ...choice, response_token_ids: [10, 11, 2] } })).kind).toBe('completed');
  const torn = body({ answer: bare, choice: { ...choice, meta_info: { output_token_logprobs: [[-0.5]] } } });
  expect(because(torn)).toContain('token_ids[0] is missing');
});

test('text without ids is an answer only where ids are not promised; then its own counts tell whether it was cut', () => {
  const silent = (completion: unknown, more: object = {}) =>
    body({
      answer: { prompt_token_ids: undefined, usage: { prompt_tokens: 2, completion_tokens: completion } },
      choice: { token_ids: undefined, ...more },
    });
  expect(read(silent(3)).kind).toBe('malformed');
  for (const ids of ['unknown', 'never'] as const) {
    const text = { promptIds: [], outputIds: [], text: 'hi', endsWithStopId: false };
    expect(read(silent(3), FACTS, 50, ids)).toMatchObject({
      reply: { ...text, finish: 'stop', usage: { prompt: 2, completion: 3 } },
    });
    expect(read(silent(50), FACTS, 50, ids)).toMatchObject({ reply: { ...text, finish: 'length' } });
    expect(read(silent(3, { finish_reason: 'length' }), FACTS, 50, ids)).toMatchObject({ reply: { finish: 'length' } });
    expect(read(silent(undefined), FACTS, 50, ids)).toMatchObject({ reply: { usage: { prompt: 2, completion: 0 } } });
  }
  // Ids that come although none are promised are not taken; half of them, where they may come, are a contradiction.
  expect(read(body(), FACTS, 50, 'never')).toMatchObject({ reply: { promptIds: [], outputIds: [] } });
  expect(read(body(), FACTS, 50, 'unknown')).toMatchObject({ reply: { promptIds: [1, 5], outputIds: [10, 11, 2] } });
  expect(read(body({ choice: { token_ids: undefined } }), FACTS, 50, 'unknown').kind).toBe('malformed');
});

test('an answer that the endpoint withheld is refused, not asked again', () => {
  expect(read(body({ choice: { finish_reason: 'content_filter' } }))).toMatchObject({ kind: 'refused' });
});

test('ids are asked for last: no extra field takes them away', () => {
  const rendered = renderChat({ ...TURN, extraBody: { logprobs: false } }, { idFields: { logprobs: true } });
  expect(JSON.parse(rendered.body ?? '')).toMatchObject({ logprobs: true });
});

test.each([
  [400, 'refused'],
  [413, 'refused'],
  [422, 'refused'],
  [401, 'unauthorised'],
  [403, 'unauthorised'],
  [404, 'unauthorised'],
  [405, 'unauthorised'],
  [408, 'overloaded'],
  [409, 'overloaded'],
  [425, 'overloaded'],
  [429, 'overloaded'],
  [503, 'overloaded'],
  [500, 'failed'],
  [502, 'failed'],
  [504, 'failed'],
  [204, 'malformed'],
  [302, 'malformed'],
] as const)('status %i is %s', (status, kind) => {
  const outcome = outcomeOfStatus({ status, body: '{"error":{"message":"why"}}', retryAfterMs: 1500 });
  expect(outcome).toMatchObject({ kind, status, because: expect.stringMatching(`^HTTP ${status}: why`) });
  if (kind === 'overloaded') expect(outcome).toMatchObject({ retryAfterMs: 1500 });
});

test('the server’s own sentence is found where servers put it, on one line, cut to a length', () => {
  expect(errorText('{"error":"a"}')).toBe('a');
  expect(errorText('{"message":"b"}')).toBe('b');
  expect(errorText('{"detail":"c"}')).toBe('c');
  expect(errorText(' bad\n gateway ')).toBe('bad gateway');
  expect(errorText('')).toBe('no text');
  expect(errorText('x'.repeat(1000)).length).toBeLessThan(310);
});

test('a long sentence of the server never pushes out what a refusal means', () => {
  for (const status of [401, 404]) {
    const outcome = outcomeOfStatus({ status, body: 'x'.repeat(1000), retryAfterMs: 0 });
    expect(outcome).toMatchObject({ because: expect.stringMatching(/^HTTP 40[14]: x+… \(the .*\)$/) });
    if ('because' in outcome) expect(outcome.because.length).toBeLessThan(320);
  }
});

test('no reply makes it throw, and no reason is longer than a line of a table', () => {
  const anyBody = fc.oneof(
    fc.string(),
    fc.json(),
    fc.anything().map((value) => JSON.stringify({ choices: [value], usage: value }) ?? ''),
  );
  fc.assert(
    fc.property(anyBody, fc.integer({ min: 100, max: 599 }), fc.constantFrom(...PROMISES), (text, status, ids) => {
      const outcome = readChat({ status, body: text, retryAfterMs: 0 }, { facts: FACTS, maxTokens: 50, ids });
      expect(outcome.kind).not.toBe('completed');
      if ('because' in outcome) expect(outcome.because.length).toBeLessThan(320);
    }),
  );
});

test('a turn is rendered with ids asked for, and fields of the engine laid over it last', () => {
  const turn = TURN;
  const rendered = renderChat(turn, ASKED);
  expect([rendered.method, rendered.path]).toEqual(['POST', '/v1/chat/completions']);
  expect(JSON.parse(rendered.body ?? '')).toEqual({
    ...{ model: 'm', messages: [{ role: 'user', content: 'hello' }], max_tokens: 50, temperature: 0, top_p: 0.9, seed: 99 },
    ...{ stream: false, return_token_ids: true, chat_template_kwargs: { enable_thinking: false }, min_p: 0.1 },
    ...{ top_k: -1, repetition_penalty: 1 },
  });
  const { sampling } = turn;
  const bodyOf = (change: Partial<typeof sampling>, style: ChatStyle = ASKED) =>
    JSON.parse(renderChat({ ...turn, extraBody: {}, sampling: { ...sampling, ...change } }, style).body ?? '') as object;
  expect(bodyOf({ topK: 20 })).toMatchObject({ top_k: 20 });
  expect(bodyOf({ stop: ['\n\n'] })).toMatchObject({ stop: ['\n\n'] });
  // A plain endpoint is sent nothing that OpenAI's API does not have, unless it is asked for.
  const plain = { idFields: {}, isPlain: true };
  const keys = ['chat_template_kwargs', 'max_tokens', 'messages', 'model', 'seed', 'stream', 'temperature', 'top_p'];
  expect(Object.keys(bodyOf({}, plain)).sort()).toEqual(keys);
  expect(bodyOf({ topK: 20, stop: ['x'] }, plain)).toMatchObject({ top_k: 20, stop: ['x'] });
});
