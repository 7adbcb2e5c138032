/** A launch of the lookalike that is ready, with a client; and a load that keeps so many requests in flight. */
import { Pool } from 'undici';
import { onTestFinished } from 'vitest';
import { peelLine } from '../../src/engine/log-envelope.ts';
import type { LogEvent } from '../../src/engine/log-event.ts';
import { readSamples } from '../../src/engine/prometheus.ts';
import { parseSglangMessage } from '../../src/engine/sglang/log-lines.ts';
import { type Launch, type LaunchRequest, startLaunch } from './launch-bench.ts';

export interface ServedReply {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what the tests look at in a reply; a key that it lacks fails its assertion
  readonly json: any;
}

export interface ServeBench extends Launch {
  ask(method: 'GET' | 'POST', path: string, body?: unknown, signal?: AbortSignal): Promise<ServedReply>;
  /** The first sample of each name; undefined = there is none. */
  metric(name: string): Promise<number | undefined>;
  /** Decode readings in the log, from the `from`-th character on. */
  readings(from?: number): Extract<LogEvent, { kind: 'decode' }>[];
  /** Until so many more readings are printed. */
  moreReadings(count: number): Promise<void>;
  /** The fault is there, and what was printed before it is read: the answer is where the log goes on. */
  fault(fault: object): Promise<number>;
}

export async function startServing(request: LaunchRequest): Promise<ServeBench> {
  const launch = await startLaunch(request);
  await launch.until(request.as?.startsWith('vllm') ? 'Application startup complete' : 'fired up and ready');
  const pool = new Pool(`http://127.0.0.1:${launch.port}`, { connections: 400, headersTimeout: 0, bodyTimeout: 0 });
  onTestFinished(() => pool.destroy());

  async function ask(method: 'GET' | 'POST', path: string, body?: unknown, signal?: AbortSignal): Promise<ServedReply> {
    const sent = body === undefined ? null : JSON.stringify(body);
    const reply = await pool.request({ method, path, body: sent, signal: signal ?? null });
    const text = await reply.body.text();
    return { status: reply.statusCode, text, json: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : undefined };
  }
  return {
    ...launch,
    ask,
    metric: async (name) => readSamples((await ask('GET', '/metrics')).text, name)[0]?.value,
    readings: (from = 0) =>
      launch
        .log()
        .slice(from)
        .split('\n')
        .flatMap((line) => parseSglangMessage(peelLine(line).message) ?? [])
        .flatMap((event) => (event.kind === 'decode' ? [event] : [])),
    async moreReadings(count) {
      const wanted = countLines(launch.log()) + count;
      while (countLines(launch.log()) < wanted) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    },
    async fault(fault) {
      await ask('POST', '/_lookalike/fault', fault);
      const mark = `/nowhere-${marks++}`;
      await ask('GET', mark);
      await launch.until(mark);
      return launch.log().indexOf(mark);
    },
  };
}

/** Seldom enough that looking at a long log costs the load nothing. */
const LOOK_MS = 200;
let marks = 0;

const countLines = (log: string): number => log.split('Decode batch').length;

/** Kept in flight until the test ends or the server does: when one is answered the next is sent. */
export function keepInFlight(bench: ServeBench, count: number, bodyOf: (nth: number) => object): { answered(): number } {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  let [sent, answered] = [0, 0];
  async function slot(): Promise<void> {
    while (!over.signal.aborted) {
      const reply = await bench.ask('POST', '/generate', bodyOf(sent++), over.signal).catch(() => undefined);
      if (reply === undefined) return;
      answered += 1;
    }
  }
  for (let nth = 0; nth < count; nth++) void slot();
  return { answered: () => answered };
}

export const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
