/** The embedded engine: chat in vLLM's shape, facts in SGLang's. It is started by Aerie, so its facts are complete. */
import { countOf, looseObject, readChat, renderChat, textOf } from '../chat-completion.ts';
import type { Dialect, ServerFacts } from '../dialect.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';

export const embedded: Dialect = {
  name: 'embedded',
  healthRequest: { method: 'GET', path: '/health' },
  isReady: (status) => status === 200,
  factRequests: [{ method: 'GET', path: '/server_info' }],
  parseFacts(replies) {
    return factsFromServerInfo(replies[0]?.body ?? '');
  },
  renderTurn: renderChat,
  readReply: readChat,
  renderDetokenize,
  readDetokenize: readDetokenized,
  exactness: () => ({ exact: true, because: '' }),
};

/** `/server_info` with SGLang's key names, and the names the embedded engine adds. Anything missing stays unknown. */
export function factsFromServerInfo(body: string): ServerFacts {
  let info: Record<string, unknown> = {};
  try {
    info = looseObject(JSON.parse(body));
  } catch {
    // a server that does not know the path: everything stays unknown
  }
  const stopIds = info['stop_token_ids'];
  return {
    model: textOf(info['served_model_name']) || textOf(info['model_path']),
    revision: textOf(info['revision']),
    engineVersion: textOf(info['version']),
    weights: textOf(info['weights']) || 'unknown',
    kvCacheDtype: textOf(info['kv_cache_dtype']) || 'unknown',
    templateHash: textOf(info['template_hash']),
    contextTokens: Math.max(0, countOf(info['context_length'])),
    vocabularySize: Math.max(0, countOf(info['vocab_size'])),
    stopIds: Array.isArray(stopIds) ? stopIds.filter((id): id is number => countOf(id) >= 0) : [],
    sequences: Math.max(0, countOf(info['max_running_requests'])),
  };
}
