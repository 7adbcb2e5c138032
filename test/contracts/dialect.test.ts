/**
 * What every dialect promises, asked of each over real HTTP: on the lookalike and on the embedded engine, a request that it
 * renders is answered, and the answer is read for what it is; a reply that contradicts itself never becomes an answer.
 */
import { expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/base/conversation.ts';
import { type FoundTemplate, NO_TEMPLATE } from '../../src/base/prompt-template.ts';
import {
  type Dialect,
  ENGINES,
  type EngineName,
  type Outcome,
  type ServerFacts,
  type TurnRequest,
} from '../../src/engine/dialect.ts';
import { dialectOf } from '../../src/engine/dialects.ts';
import { ID_PATHS, type IdPath } from '../../src/engine/id-paths.ts';
import { RenderedPrompts } from '../../src/generation/rendered-prompts.ts';
import { readArrival, sendTurn } from '../../src/generation/send-attempt.ts';
import type { HttpClient } from '../../src/host/http.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import { type Endpoint, readFacts } from '../../src/server/endpoint.ts';
import { openPromptTemplate } from '../../src/tokens/prompt-template.ts';
import { startLookalike } from '../support/lookalike-bench.ts';
import { startEmbedded } from '../support/start-embedded.ts';

const host = nodeHost();
const SAMPLING = { temperature: 0.8, topP: 1, topK: 0, maxTokens: 24, seed: 5, stop: [] };
const QUESTION: Message = { role: 'user', content: 'what is é 漢?' };

interface Asked {
  readonly endpoint: Endpoint;
  readonly dialect: Dialect;
  readonly facts: ServerFacts;
  readonly client: HttpClient;
  readonly rendered: RenderedPrompts;
  ask(messages: readonly Message[], change?: Partial<TurnRequest>): Promise<Outcome>;
}

interface Place {
  readonly baseUrl: string;
  readonly engine: EngineName;
  readonly model: string;
  readonly template?: FoundTemplate;
}

/** A turn goes the way it goes in a run: made ready where it has to be, sent, read. */
async function askAt({ baseUrl, engine, model, template = NO_TEMPLATE }: Place): Promise<Asked> {
  const dialect = dialectOf(engine);
  const client = host.openHttp({ baseUrl, connections: 4 });
  onTestFinished(() => client.close());
  const { signal } = new AbortController();
  const facts = await readFacts({ client, clock: host.clock, signal }, { dialect, server: 's', model });
  if (typeof facts === 'string') throw new Error(facts);
  const endpoint: Endpoint = { server: 's', dialect, facts, launch: 1, turns: client, control: client, template };
  const rendered = new RenderedPrompts();
  const options = { deadlineMs: 120_000, abort: signal, clock: host.clock };
  return {
    ...{ endpoint, dialect, facts, client, rendered },
    async ask(messages, change = {}) {
      const base = { model, messages, tools: [], sampling: SAMPLING, seed: 11, templateKwargs: {}, extraBody: {} };
      const prepared = await rendered.prepare(endpoint, { ...base, ...change }, options);
      if ('outcome' in prepared) return prepared.outcome;
      return readArrival(await sendTurn(endpoint, prepared.turn, options), endpoint, prepared.turn);
    },
  };
}

const lookalikeAt = async (engine: EngineName, scenario: object = {}) =>
  await askAt({ baseUrl: (await startLookalike({ scenario })).engine.baseUrl, engine, model: 'lookalike' });

async function embeddedAt(engine: EngineName): Promise<Asked> {
  const started = await startEmbedded(['--context', '512', '--sequences', '2']);
  onTestFinished(started.stop);
  return await askAt({ baseUrl: started.baseUrl, engine, model: 'tiny' });
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

/** The lookalike's own template, as its model's files would have it. */
const LOOKALIKE_TEMPLATE = `{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}`;
const templateOf = (jinja: string) => openPromptTemplate({ config: {}, jinja });

/** What a server of that row is like. */
function scenarioOf({ engine, from, kind }: Pick<IdPath, 'engine' | 'from' | 'kind'>): object {
  const ids = { 'return-token-ids': 'always', 'meta-info': 'meta-info', rendered: 'none', text: 'none' }[kind];
  return { version: from.join('.'), ids, countsMessages: engine !== 'sglang' };
}

async function versionAt(
  row: Pick<IdPath, 'engine' | 'from' | 'kind'>,
  template?: FoundTemplate,
  scenario: object = {},
): Promise<Asked> {
  const bench = await startLookalike({ scenario: { ...scenarioOf(row), ...scenario } });
  const place = { baseUrl: bench.engine.baseUrl, engine: row.engine, model: 'lookalike' };
  return await askAt(template === undefined ? place : { ...place, template });
}

const PLAIN = { hasTools: false, extraBody: {} };

test.each(ID_PATHS.map((row) => [row.engine, row.from.join('.'), row] as const))(
  '%s from %s on: what is said of its ids before anything is asked is what its answers have',
  async (_, __, row) => {
    const { endpoint, rendered, ask } = await versionAt(row, templateOf(LOOKALIKE_TEMPLATE));
    const said = rendered.exactness(endpoint, PLAIN);
    expect(said).toMatchObject(row.kind === 'text' ? { exact: false } : { exact: true, how: row.how, because: '' });
    const first = replyOf(await ask([QUESTION]));
    const second = replyOf(await ask([QUESTION, { role: 'assistant', content: first.text }, { role: 'user', content: 'more' }]));
    for (const { promptIds, outputIds, usage } of [first, second])
      expect([promptIds.length, outputIds.length]).toEqual(said.exact ? [usage.prompt, usage.completion] : [0, 0]);
    if (said.exact) expect(second.promptIds.slice(0, first.promptIds.length)).toEqual(first.promptIds);
    expect(rendered.exactness(endpoint, PLAIN)).toEqual(said);
  },
);

test.each(ID_PATHS.map((row) => [row.engine, row.from.join('.'), row] as const))(
  '%s from %s on: a wrong model, a prompt that is too long and a reply that contradicts itself are no answers',
  async (_, __, row) => {
    const { ask } = await versionAt(row, templateOf(LOOKALIKE_TEMPLATE));
    expect(await ask([QUESTION], { model: 'no-such-model' })).toMatchObject({ kind: 'unauthorised', status: 404 });
    expect(await ask([{ role: 'user', content: 'long '.repeat(40_000) }])).toMatchObject({ kind: 'refused', status: 400 });
    const spoilt = [
      { do: 'garbage' },
      { do: 'empty', form: 'no-choices' },
      { do: 'wrong-count' },
      { do: 'bad-ids', id: 2 ** 31 },
    ];
    // A prompt that is rendered here is proved first: its turn is every second request.
    const each = row.kind === 'rendered' ? 2 : 1;
    const faults = spoilt.map((fault, at) => ({ ...fault, when: { request: (at + 1) * each } }));
    const spoiling = await versionAt(row, templateOf(LOOKALIKE_TEMPLATE), { faults });
    const kinds: string[] = [];
    for (const _ of spoilt) kinds.push((await spoiling.ask([QUESTION])).kind);
    const ids = row.kind === 'text' ? 'completed' : 'malformed';
    expect(kinds).toEqual(['malformed', 'malformed', ids, ids]);
  },
);

const RENDERED = { engine: 'sglang', from: [0, 5, 9], kind: 'rendered' } as const;

test('a prompt that is rendered here is what the chat makes of it, with its reasoning read as the chat reads it', async () => {
  const says = { faults: [{ do: 'say', text: '<think>a b</think>c' }], splitsReasoning: true };
  const serverInfo = { reasoning_parser: 'qwen3' };
  const here = await versionAt(RENDERED, templateOf(LOOKALIKE_TEMPLATE), { ...says, serverInfo });
  const there = await versionAt({ ...RENDERED, from: [0, 5, 18], kind: 'return-token-ids' }, undefined, { ...says, serverInfo });
  const mine = replyOf(await here.ask([QUESTION]));
  expect(mine).toMatchObject({ reasoning: 'a b', text: 'c' });
  expect(mine).toEqual(replyOf(await there.ask([QUESTION])));
});

test('without its template, or with one that cannot be rendered, it is asked as a chat, and the reason is said before', async () => {
  for (const [template, because] of [
    [undefined, /not at hand/],
    [templateOf('{% for %}'), /cannot be rendered here/],
  ] as const) {
    const { endpoint, rendered, ask } = await versionAt(RENDERED, template);
    expect(rendered.exactness(endpoint, PLAIN)).toMatchObject({
      exact: false,
      because: expect.stringMatching(because) as string,
    });
    expect(replyOf(await ask([QUESTION]))).toMatchObject({
      promptIds: [],
      outputIds: [],
      usage: { prompt: expect.any(Number) as number },
    });
  }
});

test('a template that is not the one its server has is found out by the first prompt, and nothing is asked by it', async () => {
  const other = await versionAt(RENDERED, templateOf(`Be brief.${LOOKALIKE_TEMPLATE}`));
  expect(other.rendered.exactness(other.endpoint, PLAIN).exact).toBe(true);
  const reply = replyOf(await other.ask([QUESTION]));
  expect([reply.promptIds, reply.outputIds]).toEqual([[], []]);
  const { prompt } = reply.usage;
  const because = `its server renders a prompt otherwise than the chat template that is at hand: ${prompt} tokens there, ${prompt + 9} here`;
  expect(other.rendered.exactness(other.endpoint, PLAIN)).toMatchObject({ exact: false, because });
});

test('prompts with tools are proved apart: where they differ, the others stay exact', async () => {
  const { endpoint, rendered, ask } = await versionAt(RENDERED, templateOf(LOOKALIKE_TEMPLATE), {
    serverInfo: { tool_call_parser: 'qwen25' },
  });
  const tools = ['{"type":"function","function":{"name":"f","parameters":{}}}'];
  expect(replyOf(await ask([QUESTION], { tools })).outputIds).toEqual([]);
  expect(replyOf(await ask([QUESTION])).outputIds.length).toBeGreaterThan(0);
  expect(rendered.exactness(endpoint, { ...PLAIN, hasTools: true }).because).toMatch(/renders a prompt with tools otherwise/);
  expect(rendered.exactness(endpoint, PLAIN)).toMatchObject({ exact: true, because: '' });
});

test('what goes wrong before a prompt is sent is an outcome like any other', async () => {
  const proof = {
    faults: [
      { do: 'status', status: 503, when: { request: 1 } },
      { do: 'wrong-count', when: { request: 5 } },
    ],
  };
  const { ask } = await versionAt(RENDERED, templateOf(LOOKALIKE_TEMPLATE), proof);
  // A proof; a proof and its turn; a proof and the turn whose count is wrong.
  expect([(await ask([QUESTION])).kind, (await ask([QUESTION])).kind, (await ask([QUESTION])).kind]).toEqual([
    'overloaded',
    'completed',
    'malformed',
  ]);
});

test('a server that keeps /tokenize to itself is asked as a chat, with the reason', async () => {
  const { engine } = await startLookalike({ scenario: scenarioOf(RENDERED) });
  const place = {
    baseUrl: engine.baseUrl,
    engine: 'sglang',
    model: 'lookalike',
    template: templateOf(LOOKALIKE_TEMPLATE),
  } as const;
  const { endpoint, rendered } = await askAt(place);
  const turns = host.openHttp({ baseUrl: `${engine.baseUrl}/elsewhere`, connections: 1 });
  onTestFinished(() => turns.close());
  const hidden = { ...endpoint, turns };
  const turn = {
    model: 'lookalike',
    messages: [QUESTION],
    tools: [],
    sampling: SAMPLING,
    seed: 1,
    templateKwargs: {},
    extraBody: {},
  };
  const options = { deadlineMs: 60_000, abort: new AbortController().signal, clock: host.clock };
  expect(await rendered.prepare(hidden, turn, options)).toEqual({ turn });
  expect(rendered.exactness(hidden, PLAIN)).toMatchObject({
    exact: false,
    because: expect.stringMatching(/tokenize answered 404/) as string,
  });
});
