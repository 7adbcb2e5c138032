/**
 * Whatever a server replies, on any of its paths, a run ends in an answer or an error of the table, never in a stack trace.
 * A server of a few lines plays the worst of them; what the lookalike engine can play is in generation-faults.test.ts.
 * The runs go through the door of cli-door.ts.
 */
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { onTestFinished } from 'vitest';
import { proves } from '../proves.ts';
import { makeProject, type Project } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { expectEndsWell } from '../support/ends-well.ts';

const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;

/** Given on every path but health, which is well, so that the reply is really read. */
const BODIES: Readonly<Record<string, string | Uint8Array>> = {
  ...{
    nothing: '',
    null: 'null',
    number: '3',
    text: '"x"',
    list: '[]',
    object: '{}',
    cut: '{"choices": [',
    html: '<html>busy</html>',
    deep,
  },
  ...{
    bytes: Uint8Array.from([255, 254, 0, 1]),
    proto: '{"__proto__": {"choices": 1}, "data": {"length": 1e9}}',
    'data null': '{"data": [null]}',
  },
  ...{
    'model a number': '{"data": [{"id": 7, "max_model_len": "long"}], "version": {}, "kv_cache_dtype": []}',
    huge: `{"data": [{"id": "${'x'.repeat(100_000)}"}]}`,
  },
};

const LIST = JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model', max_model_len: 4096 }], version: '0.10.2' });
const answer = (over: object, choice: object = {}) =>
  JSON.stringify({
    ...{
      id: 'x',
      object: 'chat.completion',
      model: 'm',
      prompt_token_ids: [1, 2],
      usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 },
    },
    choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop', token_ids: [3, 4], ...choice }],
    ...over,
  });

/** Given to the request for an answer alone: the server seems well until then. */
const ANSWERS: Readonly<Record<string, string>> = {
  ...{
    'no choices': answer({ choices: undefined }),
    'choices null': answer({ choices: null }),
    'choice null': answer({ choices: [null] }),
    'choices text': answer({ choices: 'x' }),
  },
  ...{
    'message null': answer({}, { message: null }),
    'content number': answer({}, { message: { content: 3 } }),
    'content list': answer({}, { message: { content: [{ text: 1 }] } }),
  },
  ...{
    'ids text': answer({}, { token_ids: 'abc' }),
    'ids nested': answer({}, { token_ids: [[1]] }),
    'ids float': answer({}, { token_ids: [1.5, -1] }),
    'ids huge': answer({}, { token_ids: [1e300, 2] }),
  },
  ...{
    'prompt ids null': answer({ prompt_token_ids: null }),
    'usage text': answer({ usage: 'x' }),
    'usage negative': answer({ usage: { prompt_tokens: -2, completion_tokens: -2 } }),
  },
  ...{
    'finish object': answer({}, { finish_reason: {} }),
    'tool calls text': answer({}, { message: { content: 'x', tool_calls: 'x' } }),
    'tool calls null': answer({}, { message: { content: null, tool_calls: [null] } }),
  },
  ...{
    surrogate: answer({}, { message: { content: '\ud800' } }),
    'reasoning number': answer({}, { message: { content: 'x', reasoning_content: 9 } }),
    error: '{"error": null}',
    deep,
    nothing: '',
  },
};

const door = openDoor();

async function serve(reply: (path: string, response: ServerResponse) => void): Promise<number> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => reply(request.url ?? '', response));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return portOf(server.address());
}

function portOf(address: unknown): number {
  return (address as { port: number }).port;
}

/** Most of the replies are waited out. An attempt still has five seconds of the world. */
const FASTER = { AERIE_CLOCK_RATE: '5' };

async function runAgainst(project: Project, port: number, command = 'run', engine = 'vllm') {
  project.writeRows('p.jsonl', [{ prompt: 'Hello.' }]);
  project.writeRun('run.yaml', {
    ...{ run: `${engine}${port}`, model: 'm', patience: '1s', 'attempt-timeout': '25s', sampling: { 'max-tokens': 8 } },
    ...{ servers: [{ engine, attach: `http://127.0.0.1:${port}` }], partitions: [{ name: 'B1', from: 'p.jsonl' }] },
  });
  return await project.aerie([command, 'run.yaml'], { env: FASTER });
}

proves(
  'error:never-a-stack',
  'the same reply on every path',
  async () => {
    const project = door.through(makeProject());
    let body: string | Uint8Array = '';
    const port = await serve((path, response) => void response.writeHead(200).end(path === '/health' ? '' : body));
    for (const [name, given] of Object.entries(BODIES)) {
      body = given;
      expectEndsWell(await runAgainst(project, port), `every reply: ${name}`);
    }
  },
  600_000,
);

/** As the other dialects: one of each kind. All of them read an answer by one reader, which a property of chat-completion.test.ts holds to any reply. */
const OF_EACH_KIND = ['choices null', 'message null', 'ids nested', 'usage text', 'tool calls null', 'deep', 'nothing'];

for (const engine of ['vllm', 'sglang', 'openai']) {
  proves(
    'error:never-a-stack',
    `a server that seems well, and its answers, as ${engine}`,
    async () => {
      const project = door.through(makeProject());
      let body = '';
      const port = await serve((path, response) => void response.writeHead(200).end(path.includes('completions') ? body : LIST));
      for (const [name, given] of Object.entries(ANSWERS).filter(([name]) => engine === 'vllm' || OF_EACH_KIND.includes(name))) {
        body = given;
        expectEndsWell(await runAgainst(project, port, 'run', engine), `${engine}, answer: ${name}`);
      }
    },
    600_000,
  );
}

proves(
  'error:never-a-stack',
  'statuses and connections of every kind',
  async () => {
    const project = door.through(makeProject());
    for (const status of [204, 301, 302, 400, 401, 403, 404, 413, 418, 429, 500, 503, 599]) {
      const port = await serve((path, response) => {
        response.writeHead(path === '/health' ? 200 : status, { location: '/', 'retry-after': 'tomorrow' }).end('no');
      });
      expectEndsWell(await runAgainst(project, port), `status ${status}`);
    }
    for (const [name, bytes] of Object.entries({
      nothing: '',
      text: 'hello\r\n\r\n',
      half: 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{',
      tls: '\x15\x03\x01',
    })) {
      const server = createTcpServer((socket) => void socket.on('error', () => undefined).end(bytes));
      server.listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      expectEndsWell(await runAgainst(project, portOf(server.address()), 'preview'), `a socket that says ${name}`);
      server.close();
    }
  },
  600_000,
);
