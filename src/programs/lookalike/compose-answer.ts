/**
 * What the lookalike answers: words picked by the request's seed and prompt ids alone, so that a second asking of the
 * same turn gets the same answer from any life of the program. Pure.
 */
import type { Random } from '../../host/host.ts';
import { drawAnswerTokens, randomFrom } from './draw.ts';
import type { AnswerTokens } from './scenario.ts';
import { decodeIds, encodeText, STOP_ID, saidSoFar } from './tokens.ts';

export interface Answer {
  /** Ends with the stop id when `finish` is `stop`. */
  readonly outputIds: readonly number[];
  /** The text of the ids, without the stop id. */
  readonly text: string;
  /** `abort`: an operator ended it. */
  readonly finish: 'stop' | 'length' | 'abort';
}

/** An answer whose length is known and whose words are not made yet: what a waiting request holds. */
export interface PlannedAnswer {
  readonly tokens: number;
  readonly finish: 'stop' | 'length';
  compose(): Answer;
}

// Plain ASCII, so that any cut between two ids is valid UTF-8.
const WORDS =
  'the a of and to in is that it for was on are as with they be at one have this from by hot but some what there we can out other were all your when up use word how said an each she which do their time if will way about many then them would like so these her long make thing see him two has look more day could go come did my sound no most number who over know water than call first people may down side been now find any new work part take get place made live where after back little only round man year came show every good me give our under name very through just form much great think say help low line before turn cause same mean differ move right boy old too does tell sentence set three want air well also play small end put home read hand port large spell add even land here must big high such follow act why ask men change went light kind off need house picture try us again animal point mother world near build self earth father'.split(
    ' ',
  );

/** `seed` and `promptIds` decide everything but the distribution and the cap. */
export function planAnswer(seed: number, promptIds: readonly number[], length: AnswerTokens, maxTokens: number): PlannedAnswer {
  const random = randomFrom(String(seed), new Uint8Array(Uint16Array.from(promptIds).buffer)); // ids fit: vocabulary < 65,536
  const wanted = Math.max(2, drawAnswerTokens(length, random) - saidSoFar(promptIds).length);
  const isCapped = wanted > maxTokens;
  const tokens = isCapped ? maxTokens : wanted;
  const finish = isCapped ? 'length' : 'stop';
  return {
    tokens,
    finish,
    compose() {
      const text = composeText(isCapped ? tokens : tokens - 1, random);
      const outputIds = encodeText(text);
      if (!isCapped) outputIds.push(STOP_ID);
      return { outputIds, text, finish };
    },
  };
}

/** A given text as an answer, from where the prompt has it already; cut at the cap like any other. */
export function sayText(whole: string, promptIds: readonly number[], maxTokens: number): Answer {
  const said = saidSoFar(promptIds);
  const wholeIds = encodeText(whole);
  const outputIds = said.every((id, at) => id === wholeIds[at]) ? wholeIds.slice(said.length) : wholeIds;
  const text = decodeIds(outputIds);
  if (outputIds.length < maxTokens) return { outputIds: [...outputIds, STOP_ID], text, finish: 'stop' };
  const kept = outputIds.slice(0, maxTokens);
  return { outputIds: kept, text: decodeIds(kept), finish: 'length' };
}

/** What had been said when an operator ended it. */
export function abortAnswer(answer: Answer, produced: number): Answer {
  const outputIds = answer.outputIds.slice(0, produced);
  return { outputIds, text: decodeIds(outputIds.filter((id) => id !== STOP_ID)), finish: 'abort' };
}

function composeText(length: number, random: Random): string {
  let text = '';
  while (text.length < length) {
    if (text !== '') text += random() < 0.1 ? '. ' : ' '; // a sentence of about ten words
    text += WORDS[Math.floor(random() * WORDS.length)];
  }
  return text.slice(0, length);
}
