/**
 * The engine that driver benchmarks ask: vLLM's shape under `return_token_ids`, replies rendered before the first request,
 * over bare sockets, so that it is never what is measured. It holds each request for its latency, and it is the witness:
 * requests in flight and times are its own, the same for every driver.
 *
 * `node mock-engine.mjs '{"asked":64,"latencyMs":[150,350],"answerTokens":64,"promptTokens":48}'`; prints its port, ends when
 * stdin closes. `GET /_mock/stats` gives what it saw.
 */
import { createServer } from 'node:net';

const { asked, latencyMs, answerTokens, promptTokens } = JSON.parse(process.argv[2] ?? '{}');
/** Enough that no two neighbours are alike, few enough to stay in the cache. */
const REPLIES = 16;
const VOCABULARY = 150_000;

/** A fixed sequence of numbers in [0, 1): every driver meets the same latencies in the same order. */
function sequence(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const words = ['the ', 'model ', 'answers ', 'a ', 'question ', 'in ', 'many ', 'words, ', 'each ', 'of ', 'them ', 'short. '];
const textOfReply = [];
const replies = Array.from({ length: REPLIES }, (_, nth) => {
  const random = sequence(nth + 1);
  const ids = Array.from({ length: answerTokens }, () => Math.floor(random() * VOCABULARY));
  ids[0] = nth; // by which /detokenize knows the reply
  const text = ids
    .map(() => words[Math.floor(random() * words.length)])
    .join('')
    .trim();
  textOfReply.push(text);
  return render({
    id: `chatcmpl-${nth}`,
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'mock',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, refusal: null, tool_calls: [], reasoning_content: null },
        logprobs: null,
        finish_reason: 'stop',
        stop_reason: null,
        token_ids: ids,
      },
    ],
    usage: {
      prompt_tokens: promptTokens,
      total_tokens: promptTokens + answerTokens,
      completion_tokens: answerTokens,
      prompt_tokens_details: { cached_tokens: 0 },
    },
    prompt_logprobs: null,
    prompt_token_ids: Array.from({ length: promptTokens }, () => Math.floor(random() * VOCABULARY)),
  });
});

function render(body, status = '200 OK') {
  const text = JSON.stringify(body);
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`;
  return Buffer.from(head + text);
}

const latency = sequence(4_711);
/** Pairs of time and requests in flight from then on. */
const times = [];
const levels = [];
let inFlight = 0;
let received = 0;
let answered = 0;
let lastReceivedAt = 0;
let lastAnsweredAt = 0;

function note(change) {
  inFlight += change;
  times.push(performance.now());
  levels.push(inFlight);
}

function serveTurn(socket) {
  received += 1;
  note(1);
  lastReceivedAt = times.at(-1);
  const [least, most] = latencyMs;
  setTimeout(
    () => {
      answered += 1;
      note(-1);
      lastAnsweredAt = times.at(-1);
      socket.write(replies[answered % REPLIES]);
    },
    least + latency() * (most - least),
  );
}

/** Mean requests in flight from the first moment at which all that were asked for were there (else the most there ever were) to the last request. */
function stats() {
  const most = levels.reduce((best, level) => Math.max(best, level), 0);
  const full = levels.findIndex((level) => level >= Math.min(asked, most));
  let area = 0;
  for (let at = full; at >= 0 && at + 1 < times.length && times[at] < lastReceivedAt; at++)
    area += levels[at] * (Math.min(times[at + 1], lastReceivedAt) - times[at]);
  return {
    received,
    answered,
    most,
    meanInFlight: area / (lastReceivedAt - times[full]),
    seconds: (lastAnsweredAt - times[0]) / 1000,
    cpuS: (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
  };
}

const CONTROL = {
  '/health': () => ({}),
  '/version': () => ({ version: '0.11.0' }),
  '/v1/models': () => ({ object: 'list', data: [{ id: 'mock', max_model_len: 32_768 }] }),
  '/_mock/stats': stats,
  '/detokenize': (body) => ({ prompt: textOfReply[JSON.parse(body).tokens[0]] }),
};

function serve(socket, head, body) {
  const path = head.slice(head.indexOf(' ') + 1, head.indexOf(' ', head.indexOf(' ') + 1));
  if (path === '/v1/chat/completions') return serveTurn(socket);
  const answer = CONTROL[path];
  socket.write(answer === undefined ? render({ message: 'not here' }, '404 Not Found') : render(answer(body)));
}

const server = createServer({ noDelay: true }, (socket) => {
  let open = '';
  socket.setEncoding('latin1'); // only lengths and ASCII are looked at
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    open += chunk;
    for (;;) {
      const headEnd = open.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const head = open.slice(0, headEnd);
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      const end = headEnd + 4 + length;
      if (open.length < end) return;
      const body = open.slice(headEnd + 4, end);
      open = open.slice(end);
      serve(socket, head, body);
    }
  });
});
// 4,096: a driver may open all of its connections at once.
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
