/**
 * How an answer ended: its finish, and whether its last id is a stop id. For chats and for continuations alike. Pure.
 */
import type { Reply, ServerFacts } from './dialect.ts';
import { quoteLoose } from './loose-json.ts';

type Fields = Readonly<Record<string, unknown>>;
export type Ending = Pick<Reply, 'finish' | 'endsWithStopId'>;

/** undefined: the server's word for it is none that is known. */
export function readEnding(
  choice: Fields,
  { outputIds, usage }: Pick<Reply, 'outputIds' | 'usage'>,
  facts: ServerFacts,
  maxTokens: number,
): Ending | undefined {
  const finish = readFinish(choice['finish_reason']);
  if (finish === undefined) return undefined;
  const endsWithStopId = stoppedByItself(outputIds, choice, facts);
  // Some servers say `stop` for an answer that filled its cap; without a stop id at its end it was cut.
  const isStopText = typeof metStop(choice) === 'string';
  const isCut = finish === 'length' || (usage.completion >= maxTokens && !endsWithStopId && !isStopText);
  return { finish: isCut ? 'length' : finish, endsWithStopId };
}

export function wrongFinish(choice: Fields): string {
  return `finish_reason ${quoteLoose(choice['finish_reason'])} is none of stop, length, tool_calls`;
}

/** The last id is a stop id; where the server's stop ids are unknown, its word for it. */
function stoppedByItself(outputIds: readonly number[], choice: Fields, facts: ServerFacts): boolean {
  const last = outputIds.at(-1);
  if (last === undefined) return false;
  if (facts.stopIds.length > 0) return facts.stopIds.includes(last);
  if (choice['finish_reason'] === 'length') return false;
  const met = metStop(choice);
  return met === null || met === last;
}

/** vLLM's name and SGLang's: the text or the id that ended the answer. A model may have several stop ids; vLLM says null for the first of them. */
function metStop(choice: Fields): unknown {
  return choice['stop_reason'] ?? choice['matched_stop'] ?? null;
}

function readFinish(value: unknown): Reply['finish'] | undefined {
  if (value === 'stop' || value === 'length') return value;
  if (value === 'tool_calls') return 'tool-calls';
  return undefined;
}
