/** `/v1/models`, which every engine has: the name to ask for, and the context where it is told. Pure. */
import { countOf, listOf, looseObject, parseLoose, textOf } from './loose-json.ts';

export interface ListedModel {
  /** '' where the list does not tell which of its models is meant. */
  readonly id: string;
  readonly contextTokens: number;
}

/**
 * The model that the run file names, or that was loaded under that name, or else the only one there is. Several, none of
 * them the one that was asked for: none; the request then carries the run file's name, and the server says what it thinks of it.
 */
export function pickModel(body: string, wanted: string): ListedModel {
  const cards = listOf(parseLoose(body)['data']).map(looseObject);
  const named = (key: string) => cards.find((card) => textOf(card[key]) === wanted && wanted !== '');
  const card = named('id') ?? named('root') ?? (cards.length === 1 ? cards[0] : undefined) ?? {};
  return { id: textOf(card['id']), contextTokens: Math.max(0, countOf(card['max_model_len'])) };
}
