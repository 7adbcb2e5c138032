/** vLLM's log messages → events, formats of 0.6 to 0.26. Pure. Fields are found by name and not by place. */
import { type LogEvent, readNumber } from '../log-event.ts';

export function parseVllmMessage(message: string): LogEvent | undefined {
  for (const parse of PARSERS) {
    const event = parse(message);
    if (event !== undefined) return event;
  }
  return undefined;
}

type Parser = (message: string) => LogEvent | undefined;

const PARSERS: readonly Parser[] = [readArguments, readWeights, readPool, readGraphs, readStats, readReady];

function readArguments(message: string): LogEvent | undefined {
  const version = /^vLLM API server version (\S+)/.exec(message)?.[1];
  if (version !== undefined) return { kind: 'version', version };
  const given = /^non-default args: \{(.*)\}/.exec(message)?.[1];
  if (given !== undefined) return { kind: 'arguments', values: readPythonItems(given) };
  if (!/^Initializing an? (?:V1 )?LLM engine \(v/.test(message)) return undefined;
  const values: Record<string, string> = {};
  for (const [, name = '', quoted, plain] of message.matchAll(/\b(\w+)=(?:'([^']*)'|([\w.+-]+)(?=,| |$))/g)) {
    values[name] ??= quoted ?? plain ?? '';
  }
  return { kind: 'arguments', values };
}

function readWeights(message: string): LogEvent | undefined {
  const used = /\bModel loading took ([\d.]+) Gi?B/.exec(message)?.[1];
  if (used !== undefined) return { kind: 'weights-end', usedGiB: Number(used) };
  const shards = /^Loading (?:safetensors|pt) checkpoint shards:.*?(\d+)\/(\d+)/.exec(message);
  return shards === null ? undefined : { kind: 'weights-progress', done: Number(shards[1]), of: Number(shards[2]) };
}

function readPool(message: string): LogEvent | undefined {
  const hint =
    /^Using (fp8\w*) data type to store kv cache/.exec(message)?.[1] ??
    /^Using KV cache scaling factor [\d.]+ for (fp8\w*)/.exec(message)?.[1];
  if (hint !== undefined) return { kind: 'kv-hint', dtype: hint };
  const poolGiB = readNumber(/\bAvailable KV cache memory: (-?[\d.]+) GiB/.exec(message)?.[1]);
  if (poolGiB !== undefined) return { kind: 'pool-size', poolGiB };
  const tokens = readNumber(/\bGPU KV cache size: ([\d,]+) tokens/.exec(message)?.[1]);
  if (tokens !== undefined) return { kind: 'pool', tokens, dtype: '' };
  // The first engine's: blocks of 16 tokens, its default.
  const blocks = readNumber(/^# (?:GPU|cuda) blocks: (\d+)/.exec(message)?.[1]);
  if (blocks !== undefined) return { kind: 'pool', tokens: blocks * 16, dtype: '' };
  const most = /\bMaximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x/.exec(message);
  if (most === null) return undefined;
  return { kind: 'concurrency', contextTokens: readNumber(most[1]) ?? 0, requests: Number(most[2]) };
}

function readGraphs(message: string): LogEvent | undefined {
  const bar = /^Capturing (?:CUDA graphs|cudagraphs?)\b.*?(\d+)\/(\d+)/i.exec(message);
  if (bar !== null) return { kind: 'graphs-progress', done: Number(bar[1]), of: Number(bar[2]) };
  const end = /\bGraph capturing finished in [\d.]+ secs?, took (-?[\d.]+) GiB/.exec(message)?.[1];
  return end === undefined ? undefined : { kind: 'graphs-end', stage: 'decode', usedGiB: Number(end) };
}

/** `Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 70.8%`; the first engine said Pending for Waiting. */
function readStats(message: string): LogEvent | undefined {
  const generated = numberAfter(message, 'Avg generation throughput');
  const running = numberAfter(message, 'Running');
  if (generated === undefined || running === undefined) return undefined;
  const queued = numberAfter(message, 'Waiting') ?? numberAfter(message, 'Pending') ?? 0;
  const usage = (numberAfter(message, 'GPU KV cache usage') ?? 0) / 100;
  const prompted = numberAfter(message, 'Avg prompt throughput');
  return { kind: 'decode', running, queued, usage, generated, ...(prompted === undefined ? {} : { prompted }) };
}

function readReady(message: string): LogEvent | undefined {
  return /^(?:INFO:\s+)?Application startup complete\./.test(message) ? { kind: 'ready' } : undefined;
}

function numberAfter(message: string, name: string): number | undefined {
  return readNumber(new RegExp(`\\b${name}: (-?[\\d.]+)`).exec(message)?.[1]);
}

/** `'name': value` pairs of a Python dictionary, scalars only. */
function readPythonItems(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [, name = '', quoted, plain] of text.matchAll(/'(\w+)': (?:'([^']*)'|([\w.+-]+)(?=[,}]|$))/g)) {
    values[name] ??= quoted ?? plain ?? '';
  }
  return values;
}
