/**
 * SGLang's log messages → events, formats of 0.4.6 to 0.5.18. Pure.
 * Fields are found by name and not by place, because versions add fields at both ends of a line.
 */
import { type GraphStage, type LogEvent, readNumber } from '../log-event.ts';

export function parseSglangMessage(message: string): LogEvent | undefined {
  for (const parse of PARSERS) {
    const event = parse(message);
    if (event !== undefined) return event;
  }
  return undefined;
}

type Parser = (message: string) => LogEvent | undefined;

const PARSERS: readonly Parser[] = [
  (message) =>
    /^(server_args=)?ServerArgs\(/.test(message) ? { kind: 'arguments', values: readPythonFields(message) } : undefined,
  readWeights,
  readPool,
  readGraphs,
  readCapacity,
  (message) => (message.startsWith('The server is fired up and ready to roll') ? { kind: 'ready' } : undefined),
  readBatch,
  readRetraction,
];

function readWeights(message: string): LogEvent | undefined {
  if (message.startsWith('Load weight begin.')) {
    const freeGiB = sizeOf(message, 'avail mem');
    return freeGiB === undefined ? undefined : { kind: 'weights-begin', freeGiB };
  }
  if (message.startsWith('Load weight end.')) {
    const usedGiB = sizeOf(message, 'mem usage');
    const freeGiB = sizeOf(message, 'avail mem');
    return usedGiB === undefined ? undefined : { kind: 'weights-end', usedGiB, ...(freeGiB === undefined ? {} : { freeGiB }) };
  }
  const shards = /^(?:Loading safetensors checkpoint shards|Multi-thread loading shards):.*?(\d+)\/(\d+)/.exec(message);
  return shards === null ? undefined : { kind: 'weights-progress', done: Number(shards[1]), of: Number(shards[2]) };
}

function readPool(message: string): LogEvent | undefined {
  const dtype = /^Using KV cache dtype: (\S+)/.exec(message)?.[1];
  if (dtype !== undefined) return { kind: 'kv-dtype', dtype };
  const hint = readHint(message);
  if (hint !== undefined) return { kind: 'kv-hint', dtype: hint };
  // Newer versions name the pool before `is allocated`; a bound of virtual addresses is no capacity.
  if (/^[\w ]*KV [Cc]ache is allocated\./.test(message)) return readAllocated(message);
  const host = /^Allocating (?:kv hierarchical KV host pool: [\d,]+ tokens, )?([\d.]+) GB host memory/.exec(message)?.[1];
  if (host !== undefined) return { kind: 'host-pool', hostGiB: Number(host) };
  const freeGiB = message.startsWith('Memory pool end.') ? sizeOf(message, 'avail mem') : undefined;
  return freeGiB === undefined ? undefined : { kind: 'pool-end', freeGiB };
}

/** The engine sets the type itself, over `auto` or even over the flag; or says that FP8 runs without scales. */
function readHint(message: string): string | undefined {
  if (message.startsWith('Using FP8 KV cache but no scaling factors')) return 'fp8';
  const set = /^Setting KV cache dtype to ([\w.]+?)\.?(?=\s|$)/.exec(message)?.[1];
  return set ?? /\boverrides KV cache dtype: '?[\w.]+'? -> '?([\w.]+?)'?\.?$/.exec(message)?.[1];
}

function readAllocated(message: string): LogEvent | undefined {
  const tokens = readNumber(/#tokens: (\d+)/.exec(message)?.[1]);
  const both = readNumber(/\bKV size: ([\d.]+) GB/.exec(message)?.[1]);
  const keys = readNumber(/\bK size: ([\d.]+) GB/.exec(message)?.[1]);
  const values = readNumber(/\bV size: ([\d.]+) GB/.exec(message)?.[1]);
  const poolGiB = both ?? (keys === undefined || values === undefined ? undefined : keys + values);
  if (tokens === undefined) return poolGiB === undefined ? undefined : { kind: 'pool-size', poolGiB };
  const dtype = /\bdtype: ([\w.]+)/.exec(message)?.[1] ?? '';
  return { kind: 'pool', tokens, dtype, ...(poolGiB === undefined ? {} : { poolGiB }) };
}

const CAPTURE =
  /^Capture (?:(target|draft)(?: extend)? )?(?:(decode|prefill|verify|extend|piecewise) )?cuda graph (begin|end)\b/i;

function readGraphs(message: string): LogEvent | undefined {
  const bar = /^Capturing batches .*?(\d+)\/(\d+)/.exec(message);
  if (bar !== null) return { kind: 'graphs-progress', done: Number(bar[1]), of: Number(bar[2]) };
  const found = CAPTURE.exec(message);
  if (found === null) return undefined;
  const [, who = '', what = '', when = ''] = found.map((part) => part?.toLowerCase() ?? '');
  const stage: GraphStage =
    who === 'draft' || what === 'verify' ? 'draft' : /prefill|piecewise/.test(what) ? 'prefill' : 'decode';
  const freeGiB = sizeOf(message, 'avail mem');
  const free = freeGiB === undefined ? {} : { freeGiB };
  if (when === 'begin') return { kind: 'graphs-begin', stage, ...free };
  const usedGiB = sizeOf(message, 'mem usage');
  return { kind: 'graphs-end', stage, ...free, ...(usedGiB === undefined ? {} : { usedGiB }) };
}

function readCapacity(message: string): LogEvent | undefined {
  if (!message.startsWith('max_total_num_tokens=')) return undefined;
  const fields = new Map([...message.matchAll(/(\w+)=([\d.]+)/g)].map(([, name = '', value = '']) => [name, Number(value)]));
  const freeGiB = fields.get('available_gpu_mem');
  return {
    kind: 'capacity',
    poolTokens: fields.get('max_total_num_tokens') ?? 0,
    chunkedPrefill: fields.get('chunked_prefill_size') ?? 0,
    maxRunningRequests: fields.get('max_running_requests') ?? 0,
    contextTokens: fields.get('context_len') ?? 0,
    ...(freeGiB === undefined ? {} : { freeGiB }),
  };
}

/** `#running-req: 3, token usage: 0.30`, in any order and number. */
function readBatch(message: string): LogEvent | undefined {
  const kind = /^(Prefill|Decode) batch\b/.exec(message)?.[1];
  if (kind === undefined) return undefined;
  const fields = new Map<string, number>();
  for (const [, name = '', value] of message.matchAll(/(#?[A-Za-z][\w ()/-]*?): (-?[\d.]+)(?=[,\s]|$)/g)) {
    const number = readNumber(value);
    if (number !== undefined) fields.set(name.trim(), number);
  }
  const running = fields.get('#running-req');
  const queued = fields.get('#queue-req') ?? 0;
  if (kind === 'Prefill') {
    const newTokens = fields.get('#new-token');
    if (newTokens === undefined) return undefined;
    return { kind: 'prefill', newTokens, cachedTokens: fields.get('#cached-token') ?? 0, running: running ?? 0, queued };
  }
  const generated = fields.get('gen throughput (token/s)');
  if (running === undefined || generated === undefined) return undefined;
  const tokens = fields.get('#token') ?? fields.get('#full token');
  const usage = fields.get('token usage') ?? fields.get('full token usage') ?? 0;
  return { kind: 'decode', running, queued, usage, generated, ...(tokens === undefined ? {} : { tokens }) };
}

function readRetraction(message: string): LogEvent | undefined {
  if (!/^(KV cache pool is full\. Retract requests\.|Decode out of memory happened\.)/.test(message)) return undefined;
  return { kind: 'retraction', requests: readNumber(/#retracted_reqs: (\d+)/.exec(message)?.[1]) ?? 0 };
}

/** `avail mem=94.14 GB` */
function sizeOf(message: string, name: string): number | undefined {
  return readNumber(new RegExp(`\\b${name}=([\\d.]+) GB`).exec(message)?.[1]);
}

/** The scalar fields of a Python repr, `name=value`, without its quotes; lists, dictionaries and objects are passed over. */
function readPythonFields(message: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [, name = '', quoted, plain] of message.matchAll(/\b(\w+)=(?:'((?:[^'\\]|\\.)*)'|([\w.+-]+)(?=[,)]))/g)) {
    fields[name] ??= quoted ?? plain ?? '';
  }
  return fields;
}
