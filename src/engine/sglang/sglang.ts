/**
 * SGLang. Its version decides how token ids are had (docs/servers.md):
 *
 *   ≥ 0.5.18          `return_token_ids`: ids of prompt and answer in each choice (merged in July 2026)
 *   0.5.13 – 0.5.17   `return_prompt_token_ids`, and the answer's ids beside its log-probabilities in `meta_info`
 *   before            text only. `/generate` gives ids there, but takes a prompt that is rendered already: the template
 *                     and the parsers for reasoning and tools would have to be redone here, and a prompt that is nearly
 *                     the server's own is not exact.
 */
import { RETURN_TOKEN_IDS, readChat, renderChat } from '../chat-completion.ts';
import { byGenerate } from '../continuations.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';
import type { Dialect, FactReply, IdsPromise, ServerFacts } from '../dialect.ts';
import { parseLoose, textOf } from '../loose-json.ts';
import { pickModel } from '../model-list.ts';
import { factsFromServerInfo } from '../server-info.ts';
import { isAtLeast } from '../version.ts';
import { sglangLaunching } from './launching.ts';
import { sglangMetrics } from './metrics.ts';

const FIRST_WITH_IDS = [0, 5, 18] as const;
const FIRST_WITH_META_INFO = [0, 5, 13] as const;
/** An engine passes over fields that it does not know, so those between that know `return_token_ids` already take it. */
const META_INFO = { ...RETURN_TOKEN_IDS, return_prompt_token_ids: true, return_meta_info: true, logprobs: true } as const;

export const sglang: Dialect = {
  name: 'sglang',
  launching: sglangLaunching,
  metrics: sglangMetrics,
  healthRequest: { method: 'GET', path: '/health' },
  isReady: (status) => status === 200,
  factRequests: [
    { method: 'GET', path: '/v1/models', isOptional: false },
    { method: 'GET', path: '/server_info', isOptional: true },
    { method: 'GET', path: '/get_server_info', isOptional: true }, // its name before 0.5.8
    { method: 'GET', path: '/get_model_info', isOptional: true },
  ],
  parseFacts([models, ...accounts], model) {
    const { id, contextTokens } = pickModel(models?.body ?? '', model);
    const [info, older, modelInfo] = accounts.map(bodyOf);
    const facts = factsFromServerInfo(info || older || '');
    const path = facts.model || textOf(parseLoose(modelInfo ?? '')['model_path']);
    return { ...facts, model: id || path, contextTokens: facts.contextTokens || contextTokens };
  },
  renderTurn: (turn, facts) => renderChat(turn, { idFields: idFieldsOf(facts) }),
  readReply: (reply, facts, maxTokens) => readChat(reply, { facts, maxTokens, ids: promiseOf(facts) }),
  continuation: byGenerate,
  renderDetokenize,
  readDetokenize: readDetokenized,
  exactness(facts) {
    if (promiseOf(facts) !== 'never') return { exact: true, because: '' };
    const because = `SGLang ${facts.engineVersion} gives no token ids with a chat; they come with ${FIRST_WITH_META_INFO.join('.')}`;
    return { exact: false, because };
  },
};

function bodyOf({ status, body }: FactReply): string {
  return status === 200 ? body : '';
}

function promiseOf({ engineVersion }: ServerFacts): IdsPromise {
  const hasIds = isAtLeast(engineVersion, FIRST_WITH_META_INFO);
  if (hasIds === undefined) return 'unknown';
  return hasIds ? 'always' : 'never';
}

function idFieldsOf({ engineVersion }: ServerFacts): Readonly<Record<string, unknown>> {
  if (isAtLeast(engineVersion, FIRST_WITH_IDS) ?? true) return RETURN_TOKEN_IDS;
  return isAtLeast(engineVersion, FIRST_WITH_META_INFO) === true ? META_INFO : {};
}
