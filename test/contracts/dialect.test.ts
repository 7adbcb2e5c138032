/**
 * What every dialect promises, asked of each over real HTTP: on the lookalike and on the embedded engine, a request that it
 * renders is answered, and the answer is read for what it is; a reply that contradicts itself never becomes an answer.
 */
import { expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/base/conversation.ts';
import {
  type Dialect,
  ENGINES,
  type EngineName,
  type Outcome,
  type ServerFacts,
  type TurnRequest,
} from '../../src/engine/dialect.ts';
import { dialectOf } from '../../src/engine/dialects.ts';
import type { HttpClient } from '../../src/host/http.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import { readFacts } from '../../src/server/endpoint.ts';
import { startLookalike } from '../support/lookalike-bench.ts';
import { startEmbedded } from '../support/start-embedded.ts';

const host = nodeHost();
const SAMPLING = { temperature: 0.8, topP: 1, topK: 0, maxTokens: 24, seed: 5, stop: [] };
const QUESTION: Message = { role: 'user', content: 'what is é 漢?' };

interface Asked {
  readonly dialect: Dialect;
  readonly facts: ServerFacts;
  readonly client: HttpClient;
  ask(messages: readonly Message[], change?: Partial<TurnRequest>): Promise<Outcome>;
}

async function askAt(baseUrl: string, engine: EngineName, model: string): Promise<Asked> {
  const dialect = dialectOf(engine);
  const client = host.openHttp({ baseUrl, connections: 4 });
  onTestFinished(() => client.close());
  const control = { client, clock: host.clock, signal: new AbortController().signal };
  const facts = await readFacts(control, { dialect, server: 's', model });
  if (typeof facts === 'string') throw new Error(facts);
  return {
    ...{ dialect, facts, client },
    async ask(messages, change = {}) {
      const base = { model, messages, tools: [], sampling: SAMPLING, seed: 11, templateKwargs: {}, extraBody: {} };
      const turn: TurnRequest = { ...base, ...change };
      const reply = await client.send(dialect.renderTurn(turn, facts));
      if (reply.kind !== 'http') return { kind: 'lost', because: reply.kind, deadline: false };
      return dialect.readReply({ ...reply, body: reply.body.take() }, facts, turn.sampling.maxTokens);
    },
  };
}

const lookalikeAt = async (engine: EngineName, scenario: object = {}) =>
  await askAt((await startLookalike({ scenario })).engine.baseUrl, engine, 'lookalike');

async function embeddedAt(engine: EngineName): Promise<Asked> {
  const started = await startEmbedded(['--context', '512', '--sequences', '2']);
  onTestFinished(started.stop);
  return await askAt(started.baseUrl, engine, 'tiny');
}

function replyOf(outcome: Outcome) {
  if (outcome.kind !== 'completed') throw new Error(`${outcome.kind}: ${'because' in outcome ? outcome.because : ''}`);
  return outcome.reply;
}

const PLACES = { lookalike: lookalikeAt, embedded: embeddedAt };
const PAIRS = ENGINES.flatMap((engine) => (['lookalike', 'embedded'] as const).map((place) => [engine, place] as const));

test.each(PAIRS)(
  '%s on the %s: two turns, ids that are counted, that continue and that decode to the text',
  async (engine, place) => {
    const { dialect, facts, client, ask } = await PLACES[place](engine);
    expect(facts.model).toBe(place === 'lookalike' ? 'lookalike' : 'tiny');
    expect(facts.contextTokens).toBeGreaterThan(0);
    const isExact = engine !== 'openai';
    expect(dialect.exactness(facts).exact).toBe(isExact);
    if (isExact) {
      expect(facts.kvCacheDtype).toBe(place === 'lookalike' ? 'bf16' : 'float16');
      expect(facts.poolTokens).toBe(place === 'lookalike' ? 4096 * 32_768 : 1024);
    }

    const first = replyOf(await ask([QUESTION]));
    const again = replyOf(await ask([QUESTION]));
    expect(again).toEqual({ ...first, usage: { ...first.usage, cached: again.usage.cached } }); // one seed, one answer
    const second = replyOf(await ask([QUESTION, { role: 'assistant', content: first.text }, { role: 'user', content: 'more' }]));
    for (const { promptIds, outputIds, usage, finish, endsWithStopId } of [first, second]) {
      expect([promptIds.length, outputIds.length]).toEqual(isExact ? [usage.prompt, usage.completion] : [0, 0]);
      expect(usage.prompt).toBeGreaterThan(0);
      expect(usage.completion).toBeGreaterThan(0);
      expect(finish === 'length').toBe(usage.completion >= SAMPLING.maxTokens && !endsWithStopId);
    }
    if (!isExact) return;
    // The embedded engine's tiny vocabulary may cut a word otherwise when it reads it than it did when it wrote it.
    const before = [...first.promptIds, ...first.outputIds];
    if (place === 'lookalike') expect(second.promptIds.slice(0, before.length)).toEqual(before);
    const tokenized = await client.send({ method: 'POST', path: '/tokenize', body: JSON.stringify({ messages: [QUESTION] }) });
    expect(tokenized.kind === 'http' && JSON.parse(tokenized.body.take())).toMatchObject({ tokens: first.promptIds });
    const ids = first.endsWithStopId ? first.outputIds.slice(0, -1) : first.outputIds;
    const decoded = await client.send(dialect.renderDetokenize(ids));
    const text = decoded.kind === 'http' ? dialect.readDetokenize({ ...decoded, body: decoded.body.take() }) : undefined;
    const bare = (value = '') => value.replace(/\uFFFD+$/u, '').trim();
    expect(bare(text)).toBe(bare(first.text));
  },
);

test.each(PAIRS)('%s on the %s: a wrong model and a prompt that is too long are told apart', async (engine, place) => {
  const { ask } = await PLACES[place](engine);
  expect(await ask([QUESTION], { model: 'no-such-model' })).toMatchObject({ kind: 'unauthorised', status: 404 });
  expect(await ask([{ role: 'user', content: 'long '.repeat(40_000) }])).toMatchObject({ kind: 'refused', status: 400 });
});

test.each(ENGINES.map((engine) => [engine]))('%s: a reply that contradicts itself is no answer', async (engine) => {
  const spoilt = [
    { do: 'garbage' },
    { do: 'empty', form: 'no-choices' },
    { do: 'wrong-count' },
    { do: 'bad-ids', id: 2 ** 31 },
    { do: 'empty', form: 'no-tokens' },
  ];
  const faults = spoilt.map((fault, at) => ({ ...fault, when: { request: at + 1 } }));
  const { ask } = await lookalikeAt(engine, { faults });
  const kinds: string[] = [];
  for (const _ of spoilt) kinds.push((await ask([QUESTION])).kind);
  // Where only text is given there are no ids to contradict it.
  const ids = engine === 'openai' ? 'completed' : 'malformed';
  expect(kinds).toEqual(['malformed', 'malformed', ids, ids, ids]);
});

test.each(ENGINES.map((engine) => [engine]))('%s: what a status means', async (engine) => {
  const statuses = [400, 401, 403, 404, 429, 500, 503] as const;
  const faults = statuses.map((status, at) => ({ do: 'status', status, when: { request: at + 1 } }));
  const { ask } = await lookalikeAt(engine, { faults });
  const kinds: string[] = [];
  for (const _ of statuses) kinds.push((await ask([QUESTION])).kind);
  const expected = ['refused', 'unauthorised', 'unauthorised', 'unauthorised', 'overloaded', 'failed', 'overloaded'];
  expect(kinds).toEqual(expected);
});

const GOING_ON = PAIRS.filter(([engine]) => engine !== 'openai');
test.each(GOING_ON)('%s on the %s: an answer that was cut goes on by its ids', async (engine, place) => {
  const { dialect, facts, client, ask } = await PLACES[place](engine);
  const sampling = { ...SAMPLING, temperature: 0, maxTokens: 8 };
  const first = replyOf(await ask([QUESTION], { sampling }));
  expect(first.finish).toBe('length');
  const soFar = [...first.promptIds, ...first.outputIds];
  const base = { model: facts.model, messages: [], tools: [], seed: 12, templateKwargs: {}, extraBody: {} };
  const more = { ...base, sampling, soFar };
  const { continuation } = dialect;
  if (continuation === undefined) throw new Error(`${engine} takes no ids`);
  const reply = await client.send(continuation.render(more));
  if (reply.kind !== 'http') throw new Error(reply.kind);
  const second = replyOf(continuation.read({ ...reply, body: reply.body.take() }, facts, more));
  expect(second.promptIds).toEqual(soFar);
  expect([second.outputIds.length, second.usage]).toMatchObject([second.usage.completion, { prompt: soFar.length }]);
  if (place === 'lookalike') return;
  const whole = replyOf(await ask([QUESTION], { sampling: { ...sampling, maxTokens: 16 } }));
  expect([...first.outputIds, ...second.outputIds]).toEqual(whole.outputIds);
});
