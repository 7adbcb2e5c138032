/** vLLM ≥ 0.10.2, where `return_token_ids` gives the ids of prompt and answer. Without dev mode it says little about itself. */
import { countOf, looseObject, readChat, renderChat, textOf } from '../chat-completion.ts';
import type { Dialect } from '../dialect.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';

export const vllm: Dialect = {
  name: 'vllm',
  healthRequest: { method: 'GET', path: '/health' },
  isReady: (status) => status === 200,
  factRequests: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/version' },
  ],
  parseFacts(replies) {
    const card = firstModel(replies[0]?.body ?? '');
    return {
      model: textOf(card['id']),
      revision: '',
      engineVersion: versionOf(replies[1]?.body ?? ''),
      weights: 'unknown',
      kvCacheDtype: 'unknown',
      templateHash: '',
      contextTokens: Math.max(0, countOf(card['max_model_len'])),
      vocabularySize: 0,
      stopIds: [],
      sequences: 0,
    };
  },
  renderTurn: renderChat,
  readReply: readChat,
  renderDetokenize,
  readDetokenize: readDetokenized,
  exactness: () => ({ exact: true, because: '' }),
};

function firstModel(body: string): Record<string, unknown> {
  try {
    const models = looseObject(JSON.parse(body))['data'];
    return looseObject(Array.isArray(models) ? models[0] : undefined);
  } catch {
    return {};
  }
}

function versionOf(body: string): string {
  try {
    return textOf(looseObject(JSON.parse(body))['version']);
  } catch {
    return '';
  }
}
