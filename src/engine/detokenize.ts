/** `/detokenize` in vLLM's shape, which the embedded engine shares. */
import { looseObject } from './chat-completion.ts';
import type { EngineRequest } from './dialect.ts';

export function renderDetokenize(ids: readonly number[]): EngineRequest {
  return { method: 'POST', path: '/detokenize', body: JSON.stringify({ tokens: ids }) };
}

export function readDetokenized(reply: { readonly status: number; readonly body: string }): string | undefined {
  if (reply.status !== 200) return undefined;
  try {
    const text = looseObject(JSON.parse(reply.body))['prompt'];
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}
