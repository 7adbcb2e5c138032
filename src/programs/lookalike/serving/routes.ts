/**
 * Every path of a served launch but those that generate, as its engine and version have them. What goes through the scheduler's loop
 * is not answered while that hangs; what the front end knows is.
 */
import { isAtLeast } from '../../../engine/version.ts';
import { renderModels } from '../describe-engine.ts';
import type { PlainReply } from '../routes.ts';
import type { Lookalike } from '../serve-generation.ts';
import { parseObject } from '../shapes.ts';
import { answerHealth } from './health.ts';
import { renderMetrics } from './metrics.ts';
import { renderLoad, renderLoads, renderModelInfo, renderServerInfo } from './server-info.ts';
import type { Serving } from './serving.ts';

interface Context {
  readonly lookalike: Lookalike;
  readonly serving: Serving;
  readonly body: string;
  readonly name: string;
}

interface Path {
  /** `GET` or `POST`, or both. */
  readonly methods: string;
  /** The first version that has it. */
  readonly from?: readonly [number, number, number];
  answer(context: Context): PlainReply | Promise<PlainReply>;
}

const ok = (body: object | string): PlainReply => ({ status: 200, body });
const NEVER = new Promise<PlainReply>(() => undefined);
/** Through the scheduler's loop. */
const asked = (serving: Serving, answer: () => PlainReply) => (serving.scheduler.isHung ? NEVER : answer());

const HEALTH: Path = { methods: 'GET', answer: ({ lookalike, serving }) => health(lookalike, serving) };
const MODELS: Path = { methods: 'GET', answer: ({ lookalike }) => ok(renderModels(lookalike.settings, lookalike.clock.now())) };
const SERVER_INFO = ({ serving, name }: Context) => asked(serving, () => ok(renderServerInfo(serving, name)));
const MODEL_INFO = ({ serving, name }: Context) => ok(renderModelInfo(serving, name));
const METRICS = ({ serving, name }: Context) => ok(renderMetrics(serving, name));

const SGLANG: Readonly<Record<string, Path>> = {
  '/health': HEALTH,
  '/health_generate': HEALTH,
  '/v1/models': MODELS,
  '/get_server_info': { methods: 'GET', answer: SERVER_INFO },
  '/server_info': { methods: 'GET', from: [0, 5, 8], answer: SERVER_INFO },
  '/get_model_info': { methods: 'GET', answer: MODEL_INFO },
  '/model_info': { methods: 'GET', from: [0, 5, 7], answer: MODEL_INFO },
  '/get_load': { methods: 'GET', from: [0, 4, 10], answer: ({ serving }) => asked(serving, () => ok(renderLoad(serving))) },
  '/v1/loads': { methods: 'GET', from: [0, 5, 8], answer: ({ serving }) => asked(serving, () => ok(renderLoads(serving))) },
  '/flush_cache': { methods: 'GET POST', answer: flushCache },
  '/abort_request': { methods: 'POST', answer: abortRequest },
  '/pause_generation': { methods: 'POST', from: [0, 4, 10], answer: pause },
  '/continue_generation': { methods: 'POST', from: [0, 4, 10], answer: goOn },
};

const VLLM: Readonly<Record<string, Path>> = {
  '/health': HEALTH,
  '/ping': { methods: 'GET POST', answer: HEALTH.answer },
  '/v1/models': MODELS,
  '/version': { methods: 'GET', answer: ({ serving }) => ok({ version: serving.life.version }) },
  '/load': { methods: 'GET', answer: ({ lookalike }) => ok({ server_load: lookalike.stats.inFlight }) },
  '/metrics': { methods: 'GET', answer: METRICS },
};

/** Paths that do not hang on the launch: what `routes.ts` has for any engine. */
export const TOKEN_PATHS: ReadonlySet<string> = new Set(['POST /tokenize', 'POST /detokenize']);

/** undefined: this version has no such path. */
export function answerServedPath(
  lookalike: Lookalike,
  serving: Serving,
  { method, path, body }: { readonly method: string; readonly path: string; readonly body: string },
): PlainReply | Promise<PlainReply> | undefined {
  const { engine, version } = serving.life;
  const table = engine === 'sglang' ? SGLANG : VLLM;
  const found = Object.hasOwn(table, path) ? table[path] : undefined;
  const context = { lookalike, serving, body, name: lookalike.settings.servedModelName };
  if (engine === 'sglang' && path === '/metrics' && method === 'GET' && serving.flags['enable-metrics'] === true)
    return METRICS(context);
  if (found === undefined || (found.from !== undefined && isAtLeast(version, found.from) === false)) return undefined;
  if (!found.methods.split(' ').includes(method)) return { status: 405, body: { detail: 'Method Not Allowed' } };
  return found.answer(context);
}

async function health({ faults, stats }: Lookalike, serving: Serving): Promise<PlainReply> {
  if (faults.healthStatus(stats.received) === 503) return { status: 503, body: '' };
  return { status: await answerHealth(serving), body: '' };
}

function flushCache({ serving }: Context): PlainReply | Promise<PlainReply> {
  const { scheduler, life } = serving;
  return asked(serving, () => {
    const isDone = scheduler.flushCache();
    const { running, queued } = scheduler.now();
    life.log(
      isDone
        ? 'Cache flushed successfully!'
        : `Cache not flushed because there are pending requests. #queue-req: ${queued}, #running-req: ${running}`,
      0,
    );
    return { status: isDone ? 200 : 400, body: 'Cache flushed.\nPlease check backend logs for more details.\n' };
  });
}

/** Answers at once; the scheduler hears of it when it comes to its next step. */
function abortRequest({ serving, body }: Context): PlainReply {
  const fields = parseObject(body);
  if (fields?.['abort_all'] === true) serving.scheduler.abortAll();
  else if (typeof fields?.['rid'] === 'string') serving.abort(fields['rid']);
  return ok('');
}

/** `abort`, the default, ends what is under way; `retract` and `in_place` hold it. All of them hold what comes. */
function pause({ serving, body }: Context): PlainReply {
  const mode = parseObject(body)?.['mode'] ?? 'abort';
  serving.hold();
  if (mode === 'abort') serving.scheduler.abortAll();
  else serving.scheduler.hang();
  return ok({ status: 'ok', message: 'Generation paused successfully.' });
}

function goOn({ serving }: Context): PlainReply {
  serving.resume();
  return ok({ status: 'ok', message: 'Generation continued successfully.' });
}
