/** The embedded engine: chat in vLLM's shape, facts in SGLang's. It is started by Aerie, so its facts are complete. */
import { RETURN_TOKEN_IDS, readChat, renderChat } from '../chat-completion.ts';
import { byGenerate } from '../continuations.ts';
import { COUNT_TOKENS } from '../count-tokens.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';
import type { Dialect } from '../dialect.ts';
import { factsFromServerInfo } from '../server-info.ts';

export const embedded: Dialect = {
  name: 'embedded',
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
  exactness: () => ({ exact: true, because: '' }),
};
