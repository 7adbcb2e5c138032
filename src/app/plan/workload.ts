/**
 * How long prompts and answers are: from a run's finished records, from a distribution, or assumed. The draws are seeded, so
 * that the same plan gives the same figures.
 */
import { AerieError } from '../../base/errors.ts';
import { formatCount } from '../../base/units.ts';
import { drawRequests, type Lengths, parseLengths } from '../../twin/lengths.ts';
import type { TwinRequest } from '../../twin/load.ts';
import { seededRandom } from '../../twin/seeded-random.ts';
import type { OperationContext } from '../context.ts';
import { openForReading, readLiveRecords } from '../read-run.ts';
import type { PlanInput } from './question.ts';

export interface PlannedWork {
  /** A sample of what is asked; means and the twin come from it. */
  readonly requests: readonly TwinRequest[];
  /** Requests of the whole run; the sample may be smaller. */
  readonly count: number;
  /** Where the lengths are from, for people. */
  readonly source: string;
  /** False where nobody said anything about lengths: speeds then rank launches and promise nothing. */
  readonly isGiven: boolean;
}

/** A sample that a sweep of a hundred launches can play in half a minute, and whose mean is within 1 % of the whole. */
const MOST_SAMPLED = 20_000;
/** Nobody said: prompts of a chat, answers of a model that thinks a little. */
const ASSUMED_PROMPT: Lengths = { kind: 'lognormal', mean: 500, sigma: 1, most: 16_384 };
const ASSUMED_ANSWER_SIGMA = 0.83; // standard deviation = mean
const ASSUMED_ANSWER_MEAN = 2000;
const ASSUMED_COUNT = 10_000;
const ASSUMED_MAX_TOKENS = 8192;

export async function obtainWork(
  input: PlanInput,
  maxTokens: number | undefined,
  context: OperationContext,
): Promise<PlannedWork> {
  const most = input.maxTokens ?? maxTokens ?? ASSUMED_MAX_TOKENS;
  if (input.workload !== undefined) return readWork(input.workload, most, input.requests, context);
  const { lengths: output, words: answers } = answerLengths(input.lengths, most);
  const prompt = input.promptLengths === undefined ? ASSUMED_PROMPT : readLengths('--prompt-lengths', input.promptLengths);
  const count = input.requests ?? ASSUMED_COUNT;
  const load = { count: Math.min(count, MOST_SAMPLED), prompt, output, maxNewTokens: most, commonPrefixTokens: 0 };
  const requests = drawRequests(load, seededRandom(1));
  const source = `answers ${answers}, at most ${formatCount(most)} tokens`;
  return { requests, count, source, isGiven: input.lengths !== undefined };
}

export interface AnswerLengths {
  readonly lengths: Lengths;
  /** As `--lengths` takes them. */
  readonly words: string;
}

/** What `--lengths` says, or what is assumed of answers of at most so many tokens. Throws `usage.flag`. */
export function answerLengths(given: string | undefined, most: number): AnswerLengths {
  if (given !== undefined) return { lengths: readLengths('--lengths', given), words: given };
  const mean = Math.min(ASSUMED_ANSWER_MEAN, most / 2);
  const words = `lognormal:mean=${mean},sigma=${ASSUMED_ANSWER_SIGMA}`;
  return { lengths: { kind: 'lognormal', mean, sigma: ASSUMED_ANSWER_SIGMA, most }, words };
}

function readLengths(flag: string, text: string): Lengths {
  const read = parseLengths(text);
  if (!('problem' in read)) return read;
  throw new AerieError('usage.flag', `${flag} ${read.problem}.`, {
    remedy: `Write it as ${flag} lognormal:mean=4000,sigma=0.8, uniform:min=200,max=8000 or fixed:tokens=4000.`,
  });
}

/** Every answered turn of a run is a request; those that are not answered yet are taken to be like them. */
async function readWork(
  argument: string,
  maxNewTokens: number,
  asked: number | undefined,
  { host }: OperationContext,
): Promise<PlannedWork> {
  const readable = await openForReading(argument, host);
  try {
    const { run, ledger } = readable;
    const requests: TwinRequest[] = [];
    let records = 0;
    for (const { name } of run.partitions) {
      for await (const { turns } of readLiveRecords(readable, name)) {
        records += 1;
        for (const { usage } of turns) {
          if (usage.completion < 1 || usage.prompt < 1) continue;
          const id = String(requests.length);
          requests.push({
            id,
            promptTokens: usage.prompt,
            outputTokens: usage.completion,
            maxNewTokens: Math.max(maxNewTokens, usage.completion),
            shared: [],
          });
        }
        if (requests.length >= MOST_SAMPLED) break;
      }
    }
    if (requests.length === 0) throw noAnswers(run.name, argument);
    const prompts = ledger.partitions().reduce((sum, partition) => sum + partition.enrolled, 0);
    const count = asked ?? Math.round((prompts * requests.length) / Math.max(1, records));
    const source = `${formatCount(requests.length)} answers of run ${run.name}`;
    return { requests, count: Math.max(count, requests.length), source, isGiven: true };
  } finally {
    readable.ledger.close();
  }
}

function noAnswers(run: string, argument: string): AerieError {
  return new AerieError('usage.flag', `Run ${run} has no answers yet, so it does not tell how long they are.`, {
    remedy: `Let it make some (aerie run ${argument}), or give a distribution: --lengths lognormal:mean=4000,sigma=0.8`,
  });
}
