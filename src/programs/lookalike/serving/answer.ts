/**
 * One generation request through the scheduler: refused by the pool's bound, or submitted, and answered when the twin says that its
 * last token is there. The words are those of `compose-answer.ts`; lengths, waiting and cache hits are the twin's.
 */
import { isAtLeast } from '../../../engine/version.ts';
import { type Answer, abortAnswer, planAnswer, sayText } from '../compose-answer.ts';
import type { AnswerTokens, Fault } from '../scenario.ts';
import type { Ask, Refusal, Shape } from '../shapes.ts';
import { clipAnswer, longestPromptTokens, type Serving } from './serving.ts';

export interface ServedAsk {
  readonly id: string;
  readonly ask: Ask;
  readonly seed: number;
  readonly length: AnswerTokens;
  readonly fault: Fault | undefined;
  readonly path: Shape['path'];
}

/** `failed`: the pool could not hold it even alone. */
export type ServedAnswer = ({ readonly kind: 'answered' } & Told) | { readonly kind: 'failed' };

interface Told {
  readonly answer: Answer;
  readonly elapsedMs: number;
  readonly cachedTokens: number | undefined;
  readonly retractions?: number;
}

export async function answerServed(serving: Serving, { id, ask, seed, length, fault, path }: ServedAsk): Promise<ServedAnswer> {
  const { promptIds } = ask;
  const maxTokens = Math.max(1, clipAnswer(serving, promptIds.length, ask.maxTokens));
  const planned = planAnswer(seed, promptIds, length, maxTokens);
  const said = fault?.do === 'say' ? sayText(fault.text, promptIds, maxTokens) : undefined;
  const tokens = Math.max(1, said?.outputIds.length ?? planned.tokens);
  const ended = await serving.submit({ id, rid: ask.rid }, promptIds, maxTokens, tokens);
  if (ended.ending === 'out-of-memory') return { kind: 'failed' };
  const whole = said ?? planned.compose();
  const answer = ended.ending === 'finished' ? whole : abortAnswer(whole, ended.produced);
  if (ended.ending === 'finished') serving.scheduler.remember(id, ended, [...promptIds, ...whole.outputIds]);
  const retractions = serving.life.engine === 'sglang' && isFrom(serving, 0, 5, 6) ? { retractions: ended.retractions } : {};
  const { seconds } = ended;
  const cachedTokens = saysCached(serving, path) ? ended.cachedTokens : undefined;
  return { kind: 'answered', answer, elapsedMs: seconds * 1000, cachedTokens, ...retractions };
}

/** `/generate` always does; the paths of the OpenAI shape only where a flag says so. */
function saysCached({ life, flags }: Serving, path: Shape['path']): boolean {
  return (
    path === '/generate' || flags[life.engine === 'sglang' ? 'enable-cache-report' : 'enable-prompt-tokens-details'] === true
  );
}

/** The pool's own bound, in the words of SGLang's scheduler; undefined = it fits. vLLM starts with no context that its pool cannot hold. */
export function refuseForPool(serving: Serving, { path, renderError }: Shape, { promptIds }: Ask): Refusal | undefined {
  const most = longestPromptTokens(serving);
  if (serving.life.engine !== 'sglang' || promptIds.length < most) return undefined;
  const message = `Input length (${promptIds.length} tokens) exceeds the maximum allowed length (${most} tokens). Use a shorter input or enable --allow-auto-truncate.`;
  if (path === '/generate') return { status: 400, body: renderError(400, message) };
  return { status: 400, body: { object: 'error', message, type: 'BadRequest', param: null, code: 400 } };
}

function isFrom({ life }: Serving, ...least: [number, number, number]): boolean {
  return isAtLeast(life.version, least) ?? true;
}
