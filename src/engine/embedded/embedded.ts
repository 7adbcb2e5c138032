/** The embedded engine: chat in vLLM's shape, facts in SGLang's. It is started by Aerie, so its facts are complete. */
import { RETURN_TOKEN_IDS, readChat, renderChat } from '../chat-completion.ts';
import { byGenerate } from '../continuations.ts';
import { COUNT_TOKENS } from '../count-tokens.ts';
import { unlessEmpty } from '../counters.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';
import type { Dialect, MetricsReading } from '../dialect.ts';
import { exactnessByPath, idPathOf } from '../id-paths.ts';
import { countOf, parseLoose } from '../loose-json.ts';
import { factsFromServerInfo } from '../server-info.ts';

/** Its account of itself has the counters too. */
const metrics: MetricsReading = {
  request: { method: 'GET', path: '/server_info' },
  parse({ status, body }) {
    if (status !== 200) return undefined;
    const info = parseLoose(body);
    const count = (name: string) => (countOf(info[name]) < 0 ? undefined : countOf(info[name]));
    return unlessEmpty({
      generatedTokens: count('generated_tokens'),
      promptTokens: undefined,
      running: count('num_running_reqs'),
      waiting: count('num_queue_reqs'),
    });
  },
};

export const embedded: Dialect = {
  name: 'embedded',
  metrics,
  healthRequest: { method: 'GET', path: '/health' },
  isReady: (status) => status === 200,
  factRequests: [{ method: 'GET', path: '/server_info', isOptional: false }],
  parseFacts: (replies) => factsFromServerInfo(replies[0]?.body ?? ''),
  renderTurn: (turn) => renderChat(turn, { idFields: RETURN_TOKEN_IDS }),
  readReply: (reply, facts, maxTokens) => readChat(reply, { facts, maxTokens, ids: 'always' }),
  continuation: byGenerate,
  countTokens: COUNT_TOKENS,
  renderDetokenize,
  readDetokenize: readDetokenized,
  exactness: () => exactnessByPath(idPathOf('embedded', ''), ''),
};
