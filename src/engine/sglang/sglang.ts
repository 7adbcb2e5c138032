/** SGLang. Its version decides how token ids are had: `id-paths.ts`, and docs/servers.md for people. */
import { NO_TEMPLATE } from '../../base/prompt-template.ts';
import { RETURN_TOKEN_IDS, readChat, renderChat } from '../chat-completion.ts';
import { byGenerate } from '../continuations.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';
import type { Dialect, FactReply, IdsPromise, ServerFacts } from '../dialect.ts';
import { exactnessByPath, idPathOf, promiseByPath, TEXT_ONLY } from '../id-paths.ts';
import { parseLoose, textOf } from '../loose-json.ts';
import { pickModel } from '../model-list.ts';
import { factsFromServerInfo } from '../server-info.ts';
import { sglangLaunching } from './launching.ts';
import { sglangMetrics } from './metrics.ts';
import { renderedTurns } from './rendered-turns.ts';

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
  renderedTurns,
  exactness(facts, prompt = { template: NO_TEMPLATE, hasTools: false, extraBody: {} }) {
    const path = idPathOf('sglang', facts.engineVersion);
    if (path?.kind !== 'rendered') return exactnessByPath(path, `SGLang ${facts.engineVersion}`);
    const whyNot = renderedTurns.whyNot(prompt, facts);
    if (whyNot === '') return { exact: true, how: path.how, because: '' };
    const because = `SGLang ${facts.engineVersion} gives no token ids with a chat, and its prompt is not rendered here: ${whyNot}`;
    return { exact: false, how: TEXT_ONLY, because };
  },
};

function bodyOf({ status, body }: FactReply): string {
  return status === 200 ? body : '';
}

function promiseOf({ engineVersion }: ServerFacts): IdsPromise {
  return promiseByPath(idPathOf('sglang', engineVersion));
}

function idFieldsOf({ engineVersion }: ServerFacts): Readonly<Record<string, unknown>> {
  const kind = idPathOf('sglang', engineVersion)?.kind ?? 'return-token-ids';
  if (kind === 'return-token-ids') return RETURN_TOKEN_IDS;
  return kind === 'meta-info' ? META_INFO : {};
}
