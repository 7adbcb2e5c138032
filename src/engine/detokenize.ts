/** `/detokenize`: vLLM and the embedded engine call the text `prompt`, SGLang calls it `text`. */
import type { EngineRequest } from './dialect.ts';
import { parseLoose } from './loose-json.ts';

export function renderDetokenize(ids: readonly number[]): EngineRequest {
  return { method: 'POST', path: '/detokenize', body: JSON.stringify({ tokens: ids }) };
}

export function readDetokenized(reply: { readonly status: number; readonly body: string }): string | undefined {
  if (reply.status !== 200) return undefined;
  const { prompt, text } = parseLoose(reply.body);
  const decoded = prompt ?? text;
  return typeof decoded === 'string' ? decoded : undefined;
}
