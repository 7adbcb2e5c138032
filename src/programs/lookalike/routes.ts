/**
 * Every path of the lookalike but the two that generate: health, what it says about itself, tokens, and its own controls.
 * Pure, apart from the fault table that the controls are for.
 */
import { readMessages } from './chat-shape.ts';
import { renderMetrics, renderModels, renderServerInfo } from './describe-engine.ts';
import { faultSchema, listMistakes } from './scenario.ts';
import type { Lookalike } from './serve-generation.ts';
import { parseObject, renderVllmError } from './shapes.ts';
import { decodeIds, encodeMessages, encodeRendered, isTokenId } from './tokens.ts';

export interface PlainReply {
  readonly status: number;
  /** Text goes as it is; '' = empty body. */
  readonly body: object | string;
}

type Route = (lookalike: Lookalike, body: string) => PlainReply;

const ok = (body: object): PlainReply => ({ status: 200, body });
const wrong = (message: string): PlainReply => ({ status: 400, body: renderVllmError(400, message) });

/** Keyed by method and path. The controls answer loopback only; `server.ts` sees to it. */
export const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['GET /health', ({ faults, stats }) => ({ status: faults.healthStatus(stats.received), body: '' })],
  ['GET /version', ({ scenario }) => ok({ version: scenario.version })],
  ['GET /metrics', ({ settings, scenario }) => ({ status: 200, body: renderMetrics(settings, scenario) })],
  ['GET /v1/models', ({ settings, clock }) => ok(renderModels(settings, clock.now()))],
  ['GET /server_info', ({ settings, scenario }) => ok(renderServerInfo(settings, scenario))],
  ['POST /tokenize', tokenize],
  ['POST /detokenize', detokenize],
  ['GET /_lookalike/stats', ({ stats, faults }) => ok({ ...stats, struck: faults.struck() })],
  ['POST /_lookalike/fault', addFault],
  ['DELETE /_lookalike/fault', clearFaults],
]);

function tokenize({ settings, scenario }: Lookalike, body: string): PlainReply {
  const fields = parseObject(body);
  const prompt = fields?.['prompt'];
  const messages = scenario.countsMessages ? readMessages(fields?.['messages']) : undefined;
  if (typeof prompt !== 'string' && messages === undefined) return wrong("Give 'prompt' as text, or 'messages'.");
  const tokens =
    typeof prompt === 'string'
      ? encodeRendered(prompt)
      : encodeMessages(messages ?? [], fields?.['add_generation_prompt'] !== false);
  return ok({ count: tokens.length, max_model_len: settings.maxModelLen, tokens, token_strs: null });
}

function detokenize(_lookalike: Lookalike, body: string): PlainReply {
  const tokens = parseObject(body)?.['tokens'];
  if (!Array.isArray(tokens) || !tokens.every(isTokenId)) return wrong("'tokens' must be a list of ids of this vocabulary.");
  return ok({ prompt: decodeIds(tokens) });
}

function addFault({ faults }: Lookalike, body: string): PlainReply {
  const parsed = faultSchema.safeParse(parseObject(body));
  if (!parsed.success) return wrong(listMistakes(parsed.error).join('; '));
  faults.add(parsed.data);
  return ok({ added: parsed.data });
}

function clearFaults({ faults }: Lookalike): PlainReply {
  faults.clear();
  return ok({});
}
