/**
 * `/tokenize` with messages, as vLLM and the embedded engine have it: the server renders its own template with what the turn
 * would be asked with, so the count is the one that it would refuse by. SGLang's takes plain text only, and the text of the
 * messages says too little: a template may drop a part of them.
 */
import { renderMessage } from './chat-completion.ts';
import type { Dialect } from './dialect.ts';
import { countOf, parseLoose } from './loose-json.ts';

export const COUNT_TOKENS: NonNullable<Dialect['countTokens']> = {
  render({ model, messages, tools, templateKwargs, extraBody }) {
    const kwargs = extraBody['chat_template_kwargs'] ?? templateKwargs;
    const body = {
      model,
      messages: messages.map(renderMessage),
      ...(tools.length > 0 ? { tools: tools.map((tool) => JSON.parse(tool) as unknown) } : {}),
      chat_template_kwargs: kwargs,
      ...('add_generation_prompt' in extraBody ? { add_generation_prompt: extraBody['add_generation_prompt'] } : {}),
    };
    return { method: 'POST', path: '/tokenize', body: JSON.stringify(body) };
  },
  read({ status, body }) {
    const count = status === 200 ? countOf(parseLoose(body)['count']) : -1;
    return count < 0 ? undefined : count;
  },
};
