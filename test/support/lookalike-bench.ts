/** A lookalike engine started for one test, with a client, a scenario and a journal of its own; all ends with the test. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { onTestFinished } from 'vitest';
import { type JournalLine, readJournal } from './read-journal.ts';
import { type RunningProgram, spawnProgram } from './spawn-program.ts';

export const CHAT = '/v1/chat/completions';
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export interface Choice {
  readonly token_ids: number[];
  readonly finish_reason: string;
  readonly message: { readonly content: string };
}

/** What the tests look at in a reply; a key that a reply lacks is undefined at run time, and its assertion fails. */
export interface ReplyBody {
  readonly prompt_token_ids: number[];
  /** Looked into only where there is one. */
  readonly choices: [Choice, ...Choice[]];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly prompt_tokens_details: object };
  readonly error: { readonly message: string; readonly code: number };
  readonly text: string;
  readonly output_ids: number[];
  readonly meta_info: { readonly finish_reason: object; readonly e2e_latency: number };
  readonly tokens: number[];
  readonly count: number;
  readonly max_model_len: number;
  readonly prompt: string;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | undefined;
  /** The body, if it is JSON. */
  readonly json: ReplyBody;
}

export interface Bench {
  readonly engine: RunningProgram;
  readonly pool: Pool;
  readonly journal: string;
  get(path: string): Promise<{ status: number; text: string }>;
  post(path: string, body: unknown, signal?: AbortSignal): Promise<Answer>;
  stats(): Promise<Record<'received' | 'answered' | 'aborted' | 'inFlight' | 'maxInFlight' | 'struck', number>>;
}

interface BenchRequest {
  readonly scenario?: object;
  readonly args?: readonly string[];
  /** The journal of an earlier life. */
  readonly journal?: string;
}

export async function startLookalike({ scenario = {}, args = [], journal: given }: BenchRequest = {}): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-lookalike-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const journal = given ?? join(folder, 'journal.jsonl');
  const scenarioPath = join(folder, 'scenario.json');
  writeFileSync(scenarioPath, JSON.stringify(scenario));
  const engine = await spawnProgram({
    program: 'lookalike-engine.js',
    args: ['--scenario', scenarioPath, '--journal', journal, ...args],
  });
  onTestFinished(async () => void (await engine.stop()));
  const pool = new Pool(engine.baseUrl, { connections: 2_000, headersTimeout: 30_000 });
  onTestFinished(() => pool.destroy());

  async function send(method: 'GET' | 'POST', path: string, body?: string, signal?: AbortSignal): Promise<Answer> {
    const reply = await pool.request({ method, path, body: body ?? null, signal: signal ?? null });
    const text = await reply.body.text();
    return {
      status: reply.statusCode,
      text,
      retryAfter: reply.headers['retry-after'] as string | undefined,
      json: parse(text) as ReplyBody,
    };
  }
  return {
    engine,
    pool,
    journal,
    async get(path) {
      const { status, text } = await send('GET', path);
      return { status, text };
    },
    post: (path, body, signal) => send('POST', path, typeof body === 'string' ? body : JSON.stringify(body), signal),
    stats: async () => JSON.parse((await send('GET', '/_lookalike/stats')).text),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const user = (content: string) => ({ role: 'user', content });
export const ask = (content: string, more: object = {}) => ({ messages: [user(content)], max_tokens: 200, seed: 7, ...more });

export function answeredLines(bench: Bench): Extract<JournalLine, { event: 'answered' }>[] {
  return readJournal(bench.journal).filter((line) => line.event === 'answered');
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}
