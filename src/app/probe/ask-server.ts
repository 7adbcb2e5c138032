/**
 * What a server says over HTTP to a probe: health, its account of itself, its counters, all at once and none longer than the
 * probe lasts. Every answer is a value. Of health the status counts and never the body.
 */
import type { EngineCounters } from '../../engine/counters.ts';
import type { EngineName, FactReply, ServerFacts } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import type { Clock } from '../../host/host.ts';
import type { HttpClient, HttpReply } from '../../host/http.ts';
import { openTimeLimit } from '../../host/time-limit.ts';
import { type AskedHealth, healthOf } from '../../server/launch/ask-health.ts';

/** SGLang's own health waits up to 20 s for its running step before it says 503. */
export const HEALTH_WAITS_MS = 21_500;
/** Accounts go through the scheduler's loop: later than health they say nothing new. */
const ACCOUNT_WAITS_MS = 15_000;
const COUNTERS_WAIT_MS = 5_000;

export interface AskedServer {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface ToldFacts {
  readonly facts: ServerFacts | undefined;
  /** By what it answers; undefined = nothing tells. */
  readonly engine: 'sglang' | 'vllm' | undefined;
  /** How long its scheduler has not answered, while its front end did; 0 = it did, or was not asked. */
  readonly schedulerSilentMs: number;
  /** What it did not tell, and why. */
  readonly unseen: readonly string[];
}

export async function askHealthOnce(asked: AskedServer, path: string, waitMs: number): Promise<AskedHealth> {
  const beganAt = asked.clock.elapsed();
  const reply = await send(asked, path, waitMs);
  return healthOf(reply, asked.clock.elapsed() - beganAt);
}

/** The paths of the engine; of both where it is not known which it is. */
export async function askFacts(asked: AskedServer, engine: EngineName | undefined, model: string): Promise<ToldFacts> {
  const engines: readonly EngineName[] = engine === undefined ? ['sglang', 'vllm'] : [engine];
  const paths = [...new Set(engines.flatMap((name) => dialectOf(name).factRequests.map(({ path }) => path)))];
  const replies = new Map(await Promise.all(paths.map(async (path) => [path, await readPath(asked, path)] as const)));
  const told = engine === 'sglang' || engine === 'vllm' ? engine : recognise(replies);
  const dialect = dialectOf(engine ?? told ?? 'openai');
  const known = dialect.factRequests.map(({ path }) => replies.get(path) ?? NO_REPLY);
  const isAnswered = known.some(({ status }) => status === 200);
  const unseen = [...replies].flatMap(([path, { status, body }]) => {
    if (status === 401 || status === 403)
      return [`${path} answered ${status}: it wants a key. Give --key-env NAME, or api-key: in the run file`];
    return status === 0 && body !== '' ? [`${path}: ${body}`] : [];
  });
  return {
    facts: isAnswered ? dialect.parseFacts(known, model) : undefined,
    engine: told,
    schedulerSilentMs: (engine ?? told) === 'sglang' && isSchedulerSilent(replies) ? ACCOUNT_WAITS_MS : 0,
    unseen: [...new Set(unseen)].slice(0, 4),
  };
}

export async function askCounters(asked: AskedServer, engine: EngineName): Promise<EngineCounters | undefined> {
  const { metrics } = dialectOf(engine);
  if (metrics === undefined) return undefined;
  const reply = await send(asked, metrics.request.path, COUNTERS_WAIT_MS);
  return reply.kind === 'http' ? metrics.parse({ status: reply.status, body: reply.body.take() }) : undefined;
}

const NO_REPLY: FactReply = { status: 0, body: '' };

/** Status 0: no answer, and the body says why. */
async function readPath(asked: AskedServer, path: string): Promise<FactReply> {
  const reply = await send(asked, path, ACCOUNT_WAITS_MS);
  if (reply.kind === 'http') return { status: reply.status, body: reply.body.take() };
  if (reply.kind === 'transport') return { status: 0, body: reply.code === 'ECONNREFUSED' ? '' : reply.code };
  return { status: 0, body: SILENT };
}

const SILENT = `no answer in ${ACCOUNT_WAITS_MS / 1000} s`;
/** Paths that SGLang answers between two steps of its scheduler; its front end answers the others by itself. */
const OF_SCHEDULER = ['/server_info', '/get_server_info'];

function isSchedulerSilent(replies: ReadonlyMap<string, FactReply>): boolean {
  const asked = [...replies].map(([path, { status, body }]) => ({ isOfScheduler: OF_SCHEDULER.includes(path), status, body }));
  return (
    asked.some(({ isOfScheduler, body }) => isOfScheduler && body === SILENT) &&
    asked.some(({ isOfScheduler, status }) => !isOfScheduler && status === 200) &&
    asked.every(({ isOfScheduler, status }) => !isOfScheduler || status !== 200)
  );
}

function recognise(replies: ReadonlyMap<string, FactReply>): 'sglang' | 'vllm' | undefined {
  const body = (path: string) => (replies.get(path)?.status === 200 ? (replies.get(path)?.body ?? '') : '');
  if (/^vllm:/m.test(body('/metrics'))) return 'vllm';
  if (/^sglang[:_]/m.test(body('/metrics'))) return 'sglang';
  if (/"(?:max_total_num_tokens|internal_states)"/.test(body('/server_info') + body('/get_server_info'))) return 'sglang';
  if (/"model_path"/.test(body('/get_model_info'))) return 'sglang';
  return /^\s*\{\s*"version"/.test(body('/version')) ? 'vllm' : undefined;
}

async function send({ client, clock, signal }: AskedServer, path: string, waitMs: number): Promise<HttpReply> {
  const limit = openTimeLimit(clock, waitMs, signal);
  const reply = await client.send({ method: 'GET', path }, limit.signal);
  limit.close();
  return reply;
}
