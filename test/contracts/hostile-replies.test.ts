/**
 * Whatever bytes a server sends in answer to a turn, to a question about itself, or to a look at its health: an outcome with a
 * reason of one line, never an exception, never more held than an answer may have, never longer than the deadline.
 * The same through the command line, for fewer cases: test/journeys/no-stack-trace-replies.test.ts.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ENGINES, type Outcome, UNKNOWN_FACTS } from '../../src/engine/dialect.ts';
import { dialectOf } from '../../src/engine/dialects.ts';
import { readArrival, sendTurn, textProblem } from '../../src/generation/send-attempt.ts';
import { MOST_REPLY_BYTES } from '../../src/host/http.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import { lookAtHealth, readFacts } from '../../src/server/endpoint.ts';

const host = nodeHost();
/** Of a server that never ends, and of one that does: a slow machine takes a while for 64 MiB. */
const [SHORT_MS, LONG_MS] = [1_500, 100_000];
const LATE = /no answer in 2 s/;
const MOST_REASON = 320;

type Play = (socket: Socket) => void;
type Kind = Outcome['kind'];

const OK = 'HTTP/1.1 200 OK\r\n';
const GOOD = JSON.stringify({
  ...{ id: 'x', model: 'm', prompt_token_ids: [1, 2], usage: { prompt_tokens: 2, completion_tokens: 1 } },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop', token_ids: [3] }],
});

const say =
  (...parts: (string | Uint8Array)[]): Play =>
  (socket) => {
    for (const part of parts) socket.write(part);
  };
const thenEnd =
  (...parts: (string | Uint8Array)[]): Play =>
  (socket) => {
    for (const part of parts) socket.write(part);
    socket.end();
  };
const whole = (body: string | Uint8Array, headers = '', status = '200 OK'): Play =>
  say(`HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n`, body);
/** A choice with these fields over a good one. */
const odd = (choice: string, beside = ''): Play =>
  whole(
    `{"prompt_token_ids":[1,2],"usage":{"prompt_tokens":2,"completion_tokens":1},"choices":[{"message":{"content":"hi"},"finish_reason":"stop","token_ids":[3],${choice}}]${beside}}`,
  );
const nested = (open: string, inside: string, close: string) => `${open.repeat(100_000)}${inside}${close.repeat(100_000)}`;
const LIST = nested('[', '', ']');
const MAP = nested('{"a":', '1', '}');

/** Pieces without end, as fast as the socket takes them, or one in a while. */
const endless =
  (head: string, piece: string, everyMs = 0): Play =>
  (socket) => {
    socket.write(head);
    const feed = () => {
      if (socket.destroyed) return;
      if (everyMs > 0) {
        socket.write(piece);
        setTimeout(feed, everyMs);
      } else if (socket.write(piece)) setImmediate(feed);
      else socket.once('drain', feed);
    };
    feed();
  };
const megabyte = `100000\r\n${'x'.repeat(2 ** 20)}\r\n`;

const TURNS: Readonly<Record<string, readonly [Play, Kind, RegExp?]>> = {
  'a good answer, in chunks of a byte': [
    say(`${OK}Transfer-Encoding: chunked\r\n\r\n`, ...[...GOOD].map((letter) => `1\r\n${letter}\r\n`), '0\r\n\r\n'),
    'completed',
  ],
  'a good answer after 1xx': [
    say(
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n',
      `${OK}Content-Length: ${GOOD.length}\r\n\r\n`,
      GOOD,
    ),
    'completed',
  ],
  'no length, ended by closing': [thenEnd(`${OK}\r\n`, GOOD), 'completed'],
  'a mark of byte order before it': [whole(`\ufeff${GOOD}`), 'completed'],
  'closed at once': [thenEnd(), 'lost'],
  'no HTTP': [thenEnd('SSH-2.0-OpenSSH_9.2\r\n'), 'lost', /does not match the HTTP/],
  'bytes of TLS': [thenEnd(Uint8Array.from([0x15, 3, 1, 0, 2, 2, 70])), 'lost'],
  'HTTP/0.9': [thenEnd('<html>hello</html>'), 'lost'],
  'a length that is too long': [thenEnd(`${OK}Content-Length: 9999\r\n\r\n`, GOOD), 'lost'],
  'a length that is too short': [thenEnd(`${OK}Content-Length: 9\r\n\r\n`, GOOD), 'malformed', /9 characters that are not JSON/],
  'a length that is none': [thenEnd(`${OK}Content-Length: many\r\n\r\n`, GOOD), 'lost'],
  'a length below zero': [thenEnd(`${OK}Content-Length: -1\r\n\r\n`, GOOD), 'lost'],
  'two lengths': [thenEnd(`${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\n`, GOOD), 'lost'],
  'a length beyond all memory': [thenEnd(`${OK}Content-Length: 99999999999999999999999\r\n\r\n`, GOOD), 'lost'],
  'chunks that are none': [thenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, GOOD), 'lost'],
  'a chunk of endless size': [thenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n`, GOOD), 'lost'],
  'chunks that break off': [thenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\n{"cho`), 'lost'],
  'headers of a megabyte': [thenEnd(`${OK}X: ${'y'.repeat(2 ** 20)}\r\n\r\n`), 'lost', /UND_ERR_HEADERS_OVERFLOW/],
  'ten thousand headers': [thenEnd(`${OK}${'a: b\r\n'.repeat(10_000)}\r\n`), 'lost'],
  'headers without end': [endless(OK, 'a: b\r\n'.repeat(1000)), 'lost'],
  'a switch of protocols': [thenEnd('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'), 'lost'],
  '1xx without end': [endless('', 'HTTP/1.1 102 Processing\r\n\r\n', 20), 'lost', LATE],
  'nothing, without end': [say(), 'lost', LATE],
  'a body that drips without end': [endless(`${OK}Content-Length: 5000\r\n\r\n{`, ' ', 20), 'lost', LATE],
  'a body without end': [
    endless(`${OK}Transfer-Encoding: chunked\r\n\r\n`, megabyte),
    'malformed',
    /200 with more than 67,\d{3},\d{3} characters/,
  ],
  'a length of 300 MB': [
    endless(`${OK}Content-Length: 314572800\r\n\r\n`, 'x'.repeat(2 ** 20)),
    'malformed',
    /more than 67,\d{3},\d{3}/,
  ],
  '500 with a body without end': [
    endless('HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n', megabyte),
    'failed',
    /^HTTP 500: x+…$/,
  ],
  'compressed without being asked': [whole(gzipSync(GOOD), 'Content-Encoding: gzip\r\n'), 'malformed', /not JSON/],
  '200 with a page': [whole('<html><body>busy</body></html>'), 'malformed', /not JSON: <html>/],
  '200 with an event stream': [whole(`data: ${GOOD}\n\ndata: [DONE]\n\n`), 'malformed', /not JSON: data:/],
  '200 with an error': [whole('{"error":{"message":"no"}}'), 'malformed', /no choices/],
  'a status of 999': [whole('x', '', '999 Odd'), 'failed'],
  'a status of 42': [thenEnd('HTTP/1.1 42 Odd\r\n\r\n'), 'lost'],
  'to be found elsewhere': [whole('', 'Location: http://127.0.0.1:1/\r\n', '307 Temporary Redirect'), 'malformed', /HTTP 307/],
  'later, in a million years': [whole('{}', 'Retry-After: 1e300\r\n', '429 Later'), 'overloaded'],
  'an error that draws on a terminal': [whole('\u001b[2J\u0000\u202e', '', '500 Oh'), 'failed'],
  'nested without end': [whole(LIST), 'malformed', /no choices/],
  'an error nested without end': [whole(`{"error":${MAP}}`, '', '500 Oh'), 'failed'],
  'choices nested without end': [odd('"x":1', `,"choices":${LIST}`), 'malformed'],
  'a finish nested without end': [odd(`"finish_reason":${LIST}`), 'malformed', /finish_reason a list is/],
  'a finish of a megabyte': [odd(`"finish_reason":"${'s'.repeat(2 ** 20)}"`), 'malformed', /finish_reason "sss/],
  'no finish': [odd('"finish_reason":null'), 'malformed', /finish_reason null is/],
  'ids nested without end': [odd(`"token_ids":[${MAP}]`), 'malformed', /token_ids\[0\] is an object/],
  'ids as texts': [odd('"token_ids":["3"]'), 'malformed', /token_ids\[0\] is "3"/],
  'ids with a fraction': [odd('"token_ids":[3.5]'), 'malformed', /token_ids\[0\] is 3\.5/],
  'ids below zero': [odd('"token_ids":[-3]'), 'malformed', /token_ids\[0\] is -3/],
  'ids beyond counting': [odd('"token_ids":[1e300]'), 'malformed', /token_ids\[0\] is 1e\+300/],
  'ids beyond 2^53': [odd('"token_ids":[9007199254740993]'), 'malformed'],
  'ids as an object with a length': [odd('"token_ids":{"length":1,"0":3}'), 'malformed', /no token_ids/],
  'a million ids for one': [odd(`"token_ids":[${'3,'.repeat(999_999)}3]`), 'malformed', /usage says 1 completion tokens/],
  'usage nested without end': [odd('"x":1', `,"usage":${MAP}`), 'malformed', /usage says -1/],
  'content nested without end': [odd(`"message":{"content":${LIST}}`), 'malformed', /content is object/],
  'half a character': [odd('"message":{"content":"\\ud800"}'), 'completed'],
  'a key that poisons': [odd('"__proto__":{"token_ids":[9]},"constructor":{"prototype":{"polluted":1}}'), 'completed'],
  'calls nested without end': [odd(`"message":{"content":"x","tool_calls":${LIST}}`), 'malformed', /no name/],
};

async function serve(play: Play): Promise<string> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => play(socket));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

async function endpointAt(baseUrl: string, engine: (typeof ENGINES)[number] = 'vllm') {
  const client = host.openHttp({ baseUrl, connections: 2 });
  onTestFinished(() => client.close());
  const facts = { ...UNKNOWN_FACTS, engineVersion: '0.10.2', vocabularySize: 100 };
  return { server: 's1', dialect: dialectOf(engine), facts, launch: 0, turns: client, control: client };
}

const TURN = {
  ...{ model: 'm', messages: [{ role: 'user' as const, content: 'x' }], tools: [], seed: 1, templateKwargs: {}, extraBody: {} },
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 8, seed: 1, stop: [] },
};
const never = new AbortController().signal;

describe('a turn', () => {
  test.each(Object.entries(TURNS))('%s', async (_name, [play, kind, because]) => {
    const endpoint = await endpointAt(await serve(play));
    const options = { deadlineMs: because === LATE ? SHORT_MS : LONG_MS, abort: never, clock: host.clock };
    const before = process.memoryUsage().rss;
    const outcome = readArrival(await sendTurn(endpoint, TURN, options), endpoint, TURN);
    expect(outcome.kind, JSON.stringify(outcome).slice(0, 500)).toBe(kind);
    if ('because' in outcome) {
      expect(outcome.because.length).toBeLessThan(MOST_REASON);
      expect(outcome.because).toMatch(because ?? /\S/);
    }
    // The text of an answer that is held, its bytes, and what was on its way.
    expect(process.memoryUsage().rss - before).toBeLessThan(8 * MOST_REPLY_BYTES);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

test.each(['-1', '1e300', '1.5', '"9"', '9007199254740993', LIST])(
  'text only, with %.20s tokens counted: none',
  async (count) => {
    const usage = `{"prompt_tokens":${count},"completion_tokens":${count},"prompt_tokens_details":{"cached_tokens":${count}}}`;
    const play = whole(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":${usage}}`);
    const endpoint = await endpointAt(await serve(play), 'openai');
    const outcome = readArrival(
      await sendTurn(endpoint, TURN, { deadlineMs: LONG_MS, abort: never, clock: host.clock }),
      endpoint,
      TURN,
    );
    expect(outcome).toMatchObject({ kind: 'completed', reply: { usage: { prompt: 0, completion: 0, cached: 0 } } });
  },
);

describe('ids decoded by the server', () => {
  const bodies = ['', 'null', '{"prompt": 3}', `{"prompt": ${LIST}}`, LIST, '{"text": null}', '<html>', '\u0000'];
  test.each(bodies.map((body) => [body.slice(0, 30), body] as const))('answered by %j', async (_name, body) => {
    const endpoint = await endpointAt(await serve(whole(body)));
    const ids = { promptIds: [1], outputIds: [3], usage: { prompt: 1, completion: 1, cached: 0 } };
    const reply = { ...ids, text: 'hi', reasoning: '', toolCalls: [], finish: 'length' as const, endsWithStopId: false };
    const said = await textProblem(
      endpoint,
      { kind: 'completed', reply },
      { abort: never, clock: host.clock, stop: [], isMore: false },
    );
    expect(said).toBeUndefined(); // a server that cannot say is not one that contradicts itself
  });
});

describe.each(ENGINES)('what %s says about itself', (engine) => {
  const bodies = {
    nothing: '',
    deep: LIST,
    'deep inside': `{"data":[{"id":${LIST},"max_model_len":${MAP}}],"version":${LIST},"internal_states":${LIST},"kv_cache_dtype":${MAP},"stop_token_ids":${LIST}}`,
    'odd types':
      '{"data":[null,7,{"id":7,"max_model_len":-1}],"version":{},"internal_states":[null,{"kv_cache_dtype":7}],"vocab_size":1e300,"stop_token_ids":["a",-1,1e300,null],"context_length":"9"}',
    'metrics that are none': 'vllm:cache_config_info{cache_dtype="auto",num_gpu_blocks="-1"} NaN\n'.repeat(1000),
    'labels without end': `vllm:cache_config_info{${'a="b\\\\",'.repeat(20_000)}`,
    long: `{"data":[{"id":"${'x'.repeat(2 ** 20)}"}]}`,
  };
  test.each(Object.entries(bodies))('%s', async (_name, body) => {
    const endpoint = await endpointAt(await serveAll(body), engine);
    const control = { client: endpoint.control, clock: host.clock, signal: never };
    const facts = await readFacts(control, { dialect: endpoint.dialect, server: 's1', model: 'm' });
    if (typeof facts === 'string') expect(facts.length).toBeLessThan(MOST_REASON);
    else {
      for (const value of [facts.contextTokens, facts.vocabularySize, facts.poolTokens, facts.sequences])
        expect(Number.isSafeInteger(value) && value >= 0, JSON.stringify(facts).slice(0, 300)).toBe(true);
      for (const text of [facts.model, facts.engineVersion, facts.kvCacheDtype, facts.weights])
        expect(typeof text).toBe('string');
    }
    const look = await lookAtHealth(control, endpoint.dialect, 's1');
    expect(look.ready).toBe(true);
  });
});

/** The same body for every request, on one connection or several. */
async function serveAll(body: string): Promise<string> {
  const play = whole(body);
  const server = createServer((socket) => void socket.on('error', () => undefined).on('data', () => play(socket)));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}
