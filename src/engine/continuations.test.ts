/** More of an answer: what is asked by ids, and what a reply to it is taken for. Replies are untrusted. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byCompletions, byGenerate } from './continuations.ts';
import { type Continuation, type MoreRequest, UNKNOWN_FACTS } from './dialect.ts';

const FACTS = { ...UNKNOWN_FACTS, vocabularySize: 100, stopIds: [2] };
const MORE: MoreRequest = {
  ...{ model: 'm', messages: [{ role: 'user', content: 'x' }], tools: [], seed: 9, templateKwargs: { a: 1 } },
  sampling: { temperature: 0.6, topP: 0.9, topK: 0, maxTokens: 4, seed: 1, stop: [] },
  extraBody: { min_p: 0.1 },
  soFar: [1, 5, 6],
};

interface Change {
  readonly outputIds?: unknown;
  readonly promptIds?: readonly number[];
  readonly finish?: string;
  readonly completion?: number;
  readonly text?: unknown;
}
type Body = (change?: Change) => string;

const completionBody: Body = ({
  outputIds = [7, 8, 2],
  promptIds = [1, 5, 6],
  finish = 'stop',
  completion = 3,
  text = 'hi',
} = {}) =>
  JSON.stringify({
    choices: [{ text, finish_reason: finish, stop_reason: null, token_ids: outputIds, prompt_token_ids: promptIds }],
    usage: { prompt_tokens: promptIds.length, completion_tokens: completion },
  });
const generateBody: Body = ({
  outputIds = [7, 8, 2],
  promptIds = [1, 5, 6],
  finish = 'stop',
  completion = 3,
  text = 'hi',
} = {}) =>
  JSON.stringify({
    ...{ text, output_ids: outputIds },
    meta_info: {
      finish_reason: finish === 'stop' ? { type: 'stop', matched: 2 } : { type: finish, length: completion },
      ...{ prompt_tokens: promptIds.length, completion_tokens: completion, cached_tokens: 2 },
    },
  });

const BOTH: readonly [string, Continuation, Body][] = [
  ['completions', byCompletions, completionBody],
  ['generate', byGenerate, generateBody],
];
const read = (way: Continuation, body: string, status = 200) => way.read({ status, body, retryAfterMs: 0 }, FACTS, MORE);

test('the ids so far are sent, with the turn’s own sampling and nothing of its messages', () => {
  const bodies = BOTH.map(([, way]) => way.render(MORE)).map(({ path, body = '' }) => [path, JSON.parse(body) as unknown]);
  expect(bodies).toEqual([
    [
      '/v1/completions',
      {
        ...{ model: 'm', prompt: [1, 5, 6], max_tokens: 4, temperature: 0.6, top_p: 0.9, top_k: -1, min_p: 0.1 },
        ...{ repetition_penalty: 1, seed: 9, stream: false, return_token_ids: true },
      },
    ],
    [
      '/generate',
      {
        ...{ input_ids: [1, 5, 6], stream: false },
        sampling_params: {
          ...{ max_new_tokens: 4, temperature: 0.6, top_p: 0.9, top_k: -1, min_p: 0.1, repetition_penalty: 1 },
          sampling_seed: 9,
        },
      },
    ],
  ]);
});

test.each(BOTH)('%s: what was added is an answer, cut or ended', (_name, way, body) => {
  expect(read(way, body())).toMatchObject({
    kind: 'completed',
    reply: { promptIds: [1, 5, 6], outputIds: [7, 8, 2], text: 'hi', finish: 'stop', endsWithStopId: true },
  });
  expect(read(way, body({ outputIds: [7, 8, 9, 9], completion: 4, finish: 'length' }))).toMatchObject({
    reply: { finish: 'length', endsWithStopId: false },
  });
});

test.each(BOTH)('%s: a reply that contradicts itself, or answers another prompt, is malformed', (_name, way, body) => {
  const spoilt = [
    ...[
      body({ completion: 4 }),
      body({ outputIds: [7, 100, 2] }),
      body({ outputIds: null }),
      body({ outputIds: [], completion: 0 }),
    ],
    ...[body({ promptIds: [1, 5] }), body({ finish: 'abort' }), body({ text: 3 }), 'no JSON', '{}', '[]'],
  ];
  for (const text of spoilt) expect(read(way, text), text).toMatchObject({ kind: 'malformed' });
  fc.assert(fc.property(fc.json(), (text) => void expect(read(way, text).kind).toBe('malformed')));
});

test('completions: another prompt of the same length is malformed too', () => {
  expect(read(byCompletions, completionBody({ promptIds: [1, 5, 7] }))).toMatchObject({ kind: 'malformed' });
});

test.each(BOTH)('%s: a path that is not there is said so; other statuses mean what they always mean', (_name, way) => {
  expect(read(way, '{}', 404)).toMatchObject({
    kind: 'unauthorised',
    because: expect.stringMatching(/truncated: continue needs/),
  });
  expect(read(way, '{}', 400)).toMatchObject({ kind: 'refused' });
  expect(read(way, '{}', 503)).toMatchObject({ kind: 'overloaded' });
});
