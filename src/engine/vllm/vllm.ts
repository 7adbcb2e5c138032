/**
 * vLLM. From 0.10.2 on `return_token_ids` gives the ids of prompt and answer; before that there is text only.
 * Without its development mode it says little about itself: the type and the size of the KV cache are labels of a metric.
 */
import { RETURN_TOKEN_IDS, readChat, renderChat } from '../chat-completion.ts';
import { byCompletions } from '../continuations.ts';
import { COUNT_TOKENS } from '../count-tokens.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';
import { type Dialect, type IdsPromise, type ServerFacts, UNKNOWN_FACTS } from '../dialect.ts';
import { exactnessByPath, idPathOf, promiseByPath } from '../id-paths.ts';
import { parseLoose, textOf } from '../loose-json.ts';
import { pickModel } from '../model-list.ts';
import { readSamples } from '../prometheus.ts';
import { told } from '../server-info.ts';
import { vllmLaunching } from './launching.ts';
import { vllmMetrics } from './metrics.ts';

export const vllm: Dialect = {
  name: 'vllm',
  launching: vllmLaunching,
  metrics: vllmMetrics,
  healthRequest: { method: 'GET', path: '/health' },
  isReady: (status) => status === 200,
  factRequests: [
    { method: 'GET', path: '/v1/models', isOptional: false },
    { method: 'GET', path: '/version', isOptional: true },
    { method: 'GET', path: '/metrics', isOptional: true },
  ],
  parseFacts([models, version, metrics], model) {
    const { id, contextTokens } = pickModel(models?.body ?? '', model);
    const engineVersion = textOf(parseLoose(version?.body ?? '')['version']);
    return { ...UNKNOWN_FACTS, model: id, contextTokens, engineVersion, ...cacheFacts(metrics?.body ?? '') };
  },
  renderTurn: (turn, facts) => renderChat(turn, { idFields: promiseOf(facts) === 'never' ? {} : RETURN_TOKEN_IDS }),
  readReply: (reply, facts, maxTokens) => readChat(reply, { facts, maxTokens, ids: promiseOf(facts) }),
  continuation: byCompletions,
  countTokens: COUNT_TOKENS,
  renderDetokenize,
  readDetokenize: readDetokenized,
  exactness: ({ engineVersion }) => exactnessByPath(idPathOf('vllm', engineVersion), `vLLM ${engineVersion}`),
};

function promiseOf({ engineVersion }: ServerFacts): IdsPromise {
  return promiseByPath(idPathOf('vllm', engineVersion));
}

/** `vllm:cache_config_info` has every field of the cache's configuration as a label, one sample for each engine. */
function cacheFacts(metrics: string): Pick<ServerFacts, 'kvCacheDtype' | 'poolTokens'> {
  const engines = readSamples(metrics, 'vllm:cache_config_info').map(({ labels }) => labels);
  const types = new Set(engines.map((labels) => told(labels['cache_dtype'])));
  const sizes = engines.map((labels) => Number(labels['num_gpu_blocks']) * Number(labels['block_size']));
  return {
    // Engines that do not agree are none that can be spoken for.
    kvCacheDtype: types.size === 1 ? ([...types][0] ?? 'unknown') : 'unknown',
    poolTokens: sizes.every((size) => Number.isSafeInteger(size) && size > 0) ? sizes.reduce((sum, size) => sum + size, 0) : 0,
  };
}
