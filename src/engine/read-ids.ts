/**
 * The token ids and counts of a chat reply. They are believed only where they agree with each other and with what is
 * known of the vocabulary. Pure.
 */
import type { IdsPromise, Reply, ServerFacts } from './dialect.ts';
import { countOf, listOf, looseObject, quoteLoose } from './loose-json.ts';

export type IdsAndUsage = Pick<Reply, 'promptIds' | 'outputIds' | 'usage'>;
type Fields = Readonly<Record<string, unknown>>;

/** The ids of prompt and answer with the usage that agrees with them, or what is wrong. */
export function readIds(answer: Fields, choice: Fields, facts: ServerFacts, promise: IdsPromise): IdsAndUsage | string {
  const usage = readUsage(answer['usage']);
  // vLLM puts the prompt's ids beside the choices, SGLang into each.
  const promptIds = answer['prompt_token_ids'] ?? choice['prompt_token_ids'];
  const outputIds = choice['token_ids'] ?? choice['response_token_ids'] ?? idsOfLogprobs(choice['meta_info']);
  const hasNone = (promptIds ?? outputIds ?? undefined) === undefined;
  if (promise === 'never' || (promise === 'unknown' && hasNone))
    return { promptIds: [], outputIds: [], usage: atLeastZero(usage) };
  const wrong =
    idProblem('prompt_token_ids', promptIds, facts.vocabularySize) ??
    idProblem('token_ids', outputIds, facts.vocabularySize) ??
    countProblem(promptIds as number[], outputIds as number[], usage);
  return wrong ?? { promptIds: promptIds as number[], outputIds: outputIds as number[], usage };
}

/** SGLang's `return_meta_info` with log-probabilities: `[[logprob, id, text], …]`, one for each generated token. */
function idsOfLogprobs(metaInfo: unknown): unknown[] | undefined {
  const list = looseObject(metaInfo)['output_token_logprobs'];
  return Array.isArray(list) ? list.map((entry) => listOf(entry)[1]) : undefined;
}

/** One loop, not a schema: 4,000 ids a reply, thousands of replies in flight. */
function idProblem(name: string, ids: unknown, vocabularySize: number): string | undefined {
  if (!Array.isArray(ids)) return `no ${name} in the reply`;
  if (ids.length === 0) return `${name} is empty`;
  const limit = vocabularySize > 0 ? vocabularySize : 2 ** 31;
  for (let at = 0; at < ids.length; at++) {
    const id: unknown = ids[at];
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= limit) {
      return `${name}[${at}] is ${quoteLoose(id)}, the vocabulary has ${limit} ids`;
    }
  }
  return undefined;
}

function countProblem(promptIds: readonly number[], outputIds: readonly number[], usage: Reply['usage']): string | undefined {
  if (usage.prompt !== promptIds.length) return `usage says ${usage.prompt} prompt tokens, the reply has ${promptIds.length} ids`;
  if (usage.completion !== outputIds.length)
    return `usage says ${usage.completion} completion tokens, the reply has ${outputIds.length} ids`;
  return undefined;
}

/** −1 where the server does not count. */
function readUsage(value: unknown): Reply['usage'] {
  const usage = looseObject(value);
  const cached = countOf(looseObject(usage['prompt_tokens_details'])['cached_tokens']);
  return {
    prompt: countOf(usage['prompt_tokens']),
    completion: countOf(usage['completion_tokens']),
    cached: Math.max(0, cached),
  };
}

function atLeastZero({ prompt, completion, cached }: Reply['usage']): Reply['usage'] {
  return { prompt: Math.max(0, prompt), completion: Math.max(0, completion), cached };
}
