/**
 * Any endpoint that speaks OpenAI's chat completions: text only. Only fields of that API are sent, because many such
 * endpoints refuse what they do not know; `extra-body` of the run file adds whatever one of them understands.
 */
import { readChat, renderChat } from '../chat-completion.ts';
import { readDetokenized, renderDetokenize } from '../detokenize.ts';
import { type Dialect, UNKNOWN_FACTS } from '../dialect.ts';
import { exactnessByPath, idPathOf } from '../id-paths.ts';
import { pickModel } from '../model-list.ts';

export const openai: Dialect = {
  name: 'openai',
  healthRequest: { method: 'GET', path: '/v1/models' },
  /** Some have no list of models: then the first turn shows whether they answer. */
  isReady: (status) => status === 200 || status === 404 || status === 405,
  factRequests: [{ method: 'GET', path: '/v1/models', isOptional: true }],
  parseFacts([models], model) {
    const { id, contextTokens } = pickModel(models?.status === 200 ? models.body : '', model);
    return { ...UNKNOWN_FACTS, model: id, contextTokens };
  },
  renderTurn: (turn) => renderChat(turn, { idFields: {}, isPlain: true }),
  readReply: (reply, facts, maxTokens) => readChat(reply, { facts, maxTokens, ids: 'never' }),
  continuation: undefined,
  renderDetokenize,
  readDetokenize: readDetokenized,
  exactness: () => exactnessByPath(idPathOf('openai', ''), ''),
};
