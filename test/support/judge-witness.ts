/** What the judge knows besides the run folder: what was put in, and by the lookalike's journal what was asked and answered. */
import { createHash } from 'node:crypto';
import { readJournal } from './read-journal.ts';

export interface Said {
  readonly role: string;
  readonly content: string;
}

export interface ExpectedPartition {
  readonly name: string;
  /** Each different one once, without answers. No two partitions share one: they would share a seed too. */
  readonly prompts: readonly (readonly Said[])[];
  readonly duplicates: number;
  /** Lines of the source that are no prompt, counted from 1. */
  readonly badLines: readonly number[];
}

/** Fingerprints of one answer. */
export interface Answered {
  readonly outputIds: string;
  /** undefined: not looked at. */
  readonly promptIds: string | undefined;
  readonly text: string;
  readonly finish: string;
}

export class Witness {
  readonly #inputs: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #asked = new Map<string, number>();
  readonly #answers = new Map<string, Answered[]>();

  constructor(journal: string, partitions: readonly ExpectedPartition[]) {
    this.#inputs = new Map(partitions.map(({ name, prompts }) => [name, new Set(prompts.map((said) => this.inputKey(said)))]));
    for (const line of readJournal(journal)) {
      const key = `${line.hash}/${line.seed}`;
      if (line.event === 'received') this.#asked.set(key, (this.#asked.get(key) ?? 0) + 1);
      if (line.event !== 'answered' || line.status !== 200 || line.outputIds === undefined) continue;
      const { outputIds, promptIds, textSha256, finish } = line;
      const answer = { outputIds: outputIds.sha256, promptIds: promptIds?.sha256, text: textSha256 ?? '', finish: finish ?? '' };
      this.#answers.set(key, [...(this.#answers.get(key) ?? []), answer]);
    }
  }

  inputKey(said: readonly Said[]): string {
    return JSON.stringify(said.map(({ role, content }) => ({ role, content })));
  }

  isInput(partition: string, said: readonly Said[]): boolean {
    return this.#inputs.get(partition)?.has(this.inputKey(said)) === true;
  }

  timesAsked(hash: string, seed: number): number {
    return this.#asked.get(`${hash}/${seed}`) ?? 0;
  }

  wasAnswered(hash: string, seed: number, { outputIds, promptIds, text, finish }: Answered): boolean {
    const answers = this.#answers.get(`${hash}/${seed}`) ?? [];
    return answers.some(
      (given) =>
        given.outputIds === outputIds &&
        given.text === text &&
        given.finish === finish &&
        (promptIds === undefined || given.promptIds === promptIds),
    );
  }

  /** The journal's hash of what turn `turn` (from 0) must send: the questions so far, each earlier one with its answer. */
  hashOf(prompt: readonly Said[], turns: readonly { readonly text: string }[], turn: number): string {
    const sent: Said[] = [];
    let questions = 0;
    for (const said of prompt) {
      sent.push(said);
      if (said.role !== 'user') continue;
      if (questions === turn) break;
      sent.push({ role: 'assistant', content: turns[questions]?.text ?? '' });
      questions += 1;
    }
    return createHash('sha256').update(this.inputKey(sent)).digest('hex');
  }
}
