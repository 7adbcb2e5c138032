/** A request ends in one reply, whatever the server does, and leaves nothing at its signal. */
import { getEventListeners, once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type HttpClient, type HttpReply, openHttp } from './http.ts';

/** A server that gives each request, once it has come, to `answer`; and a client of it. */
async function serve(answer: (socket: Socket) => void, connections = 1): Promise<{ client: HttpClient; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      requests.push(bytes.toString());
      answer(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const client = openHttp({ baseUrl: `http://127.0.0.1:${port}/base/`, connections, headers: { authorization: 'Bearer k' } });
  onTestFinished(async () => {
    await client.close();
    server.close();
  });
  return { client, requests };
}

const head = (length: number, extra = '') => `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n${extra}\r\n`;
const bodyOf = (reply: HttpReply) => (reply.kind === 'http' ? reply.body.take() : reply.kind);
const SIGNAL = () => new AbortController();

test('a body in several pieces, cut inside a character, is read whole; the key and the base path are sent', async () => {
  const body = Buffer.from('{"é":"漢"}');
  const { client, requests } = await serve((socket) => {
    socket.write(Buffer.concat([Buffer.from(head(body.length)), body.subarray(0, 3)]));
    setTimeout(() => socket.write(body.subarray(3)), 20);
  });
  const abort = SIGNAL();
  const reply = await client.send({ method: 'POST', path: '/v1/x', body: '{}' }, abort.signal);
  expect(reply).toMatchObject({ kind: 'http', status: 200, retryAfterMs: 0 });
  expect(bodyOf(reply)).toBe('{"é":"漢"}');
  expect(requests.join('')).toMatch(
    /^POST \/base\/v1\/x HTTP\/1\.1\r\n.*authorization: Bearer k.*content-type: application\/json/is,
  );
  expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
});

test.each([
  ['an empty body', head(0), ''],
  ['a byte order mark', `${head(5)}\uFEFFhi`, 'hi'],
  ['a 103 before the reply', `HTTP/1.1 103 Early Hints\r\nretry-after: 9\r\n\r\n${head(2)}hi`, 'hi'],
])('%s', async (_name, answer, expected) => {
  const { client, requests } = await serve((socket) => socket.write(answer));
  const reply = await client.send({ method: 'GET', path: '/health' });
  expect(reply).toMatchObject({ kind: 'http', status: 200, retryAfterMs: 0 });
  expect(bodyOf(reply)).toBe(expected);
  expect(requests.join('')).not.toMatch(/content-type/i);
});

test('bytes that are no UTF-8 are shown as such, and seconds of Retry-After are milliseconds', async () => {
  const { client } = await serve((socket) => {
    socket.write(Buffer.concat([Buffer.from(head(2, 'Retry-After: 3\r\n')), Buffer.from([0x61, 0xff])]));
  });
  const reply = await client.send({ method: 'GET', path: '/' });
  expect(reply).toMatchObject({ kind: 'http', retryAfterMs: 3000 });
  expect(bodyOf(reply)).toBe('a\uFFFD');
});

test('a body that is cut and a server that is not there are told by their codes', async () => {
  const { client } = await serve((socket) => socket.end(`${head(100)}half`));
  const abort = SIGNAL();
  expect(await client.send({ method: 'GET', path: '/' }, abort.signal)).toMatchObject({
    kind: 'transport',
    code: 'UND_ERR_SOCKET',
  });
  expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
  const nobody = openHttp({ baseUrl: 'http://127.0.0.1:1', connections: 1 });
  onTestFinished(() => nobody.close());
  expect(await nobody.send({ method: 'GET', path: '/' })).toMatchObject({ kind: 'transport', code: 'ECONNREFUSED' });
});

test('an abort ends it at once: before it is sent, while it waits, in the middle of the body, and behind another request', async () => {
  let isMidway = false;
  const { client, requests } = await serve((socket) => {
    if (isMidway) socket.write(`${head(100)}half`);
  });
  const early = SIGNAL();
  early.abort();
  expect(await client.send({ method: 'GET', path: '/early' }, early.signal)).toEqual({ kind: 'aborted' });
  for (const path of ['/waiting', '/midway']) {
    isMidway = path === '/midway';
    const seen = requests.length;
    const [abort, behind] = [SIGNAL(), SIGNAL()];
    const waiting = client.send({ method: 'GET', path }, abort.signal);
    const queued = client.send({ method: 'GET', path: '/behind' }, behind.signal);
    while (requests.length === seen) await new Promise((resolve) => setTimeout(resolve, 5));
    behind.abort();
    expect(await queued).toEqual({ kind: 'aborted' });
    abort.abort();
    expect(await waiting).toEqual({ kind: 'aborted' });
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
  }
  expect(requests.join('')).not.toMatch(/early|behind/);
});
