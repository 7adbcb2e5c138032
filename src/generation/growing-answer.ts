/**
 * The answer of one turn while it grows (`truncated: continue`):
 *
 *   asked by messages ──cut at the cap──▶ asked on by ids ──cut──▶ … ──▶ whole: ended by itself, or no more may be asked
 *
 * Pieces live in memory until the answer is whole: a worker that dies between two of them asks the turn again, with the same
 * seeds. An answer is left as it is, flagged as truncated, where the engine could not have made it in one request out of
 * what it is given: with tools (calls are parsed by the chat endpoint alone), with reasoning that the engine splits by a
 * rule of its own, without ids, and where the context is full.
 */
import { bug } from '../base/errors.ts';
import type { Reply } from '../engine/dialect.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { joinTexts, learnSplit, type Split } from './answer-text.ts';

/** Decodes ids by the server's tokenizer; undefined where it cannot say. */
export type Decode = (ids: readonly number[]) => Promise<string | undefined>;

export interface GrowthLimits {
  readonly maxTokens: number;
  /** Most further requests; 0 = answers are never continued. */
  readonly continuations: number;
  readonly hasTools: boolean;
}

export interface Piece {
  readonly reply: Reply;
  readonly seed: number;
  readonly endpoint: Endpoint;
}

export class GrowingAnswer {
  readonly pieces: Piece[] = [];
  readonly #limits: GrowthLimits;
  /** Of the first piece, with whatever the engine took out of its text. */
  #firstRaw = '';
  /** How reasoning is split off; undefined where there is none. */
  #split: ((whole: string) => Split) | undefined;
  #isWhole = false;
  /** The last piece failed to come from there: another server may do. */
  #isLost = false;

  constructor(limits: GrowthLimits) {
    this.#limits = limits;
  }

  get isBegun(): boolean {
    return this.pieces.length > 0;
  }

  /** Where the answer has grown so far: its prefix is in the cache there. */
  get home(): Endpoint | undefined {
    return this.#isLost ? undefined : this.pieces.at(-1)?.endpoint;
  }

  get first(): Piece {
    return this.pieces[0] ?? noPiece();
  }

  get last(): Piece {
    return this.pieces.at(-1) ?? noPiece();
  }

  /** Prompt and answer so far. */
  get soFar(): readonly number[] {
    return [...this.first.reply.promptIds, ...this.#outputIds()];
  }

  failed(): void {
    this.#isLost = true;
  }

  async add(piece: Piece, decode: Decode): Promise<void> {
    this.pieces.push(piece);
    this.#isLost = false;
    if (this.room(piece.endpoint) > 0 && this.pieces.length === 1) await this.#beginWith(piece.reply, decode);
  }

  /** Is more asked after this piece, which is not taken yet? */
  goesOn(reply: Reply, endpoint: Endpoint): boolean {
    return this.#roomAfter(reply, this.pieces.length + 1, endpoint) > 0;
  }

  /** Most tokens of the next piece; 0 = the answer is whole. */
  room(endpoint: Endpoint): number {
    const last = this.pieces.at(-1)?.reply;
    return last === undefined ? this.#limits.maxTokens : this.#roomAfter(last, this.pieces.length, endpoint);
  }

  #roomAfter(last: Reply, pieces: number, { facts, dialect }: Endpoint): number {
    const { maxTokens, continuations, hasTools } = this.#limits;
    const isCut = last.finish === 'length' && last.outputIds.length > 0 && last.toolCalls.length === 0;
    if (this.#isWhole || !isCut || hasTools || pieces > continuations || dialect.continuation === undefined) return 0;
    const left = facts.contextTokens === 0 ? maxTokens : facts.contextTokens - last.promptIds.length - last.outputIds.length;
    return Math.max(0, Math.min(maxTokens, left));
  }

  /** Only where there are pieces. */
  async join(decode: Decode): Promise<Reply> {
    const first = this.first.reply;
    const last = this.last.reply;
    if (this.pieces.length === 1) return first;
    const outputIds = this.#outputIds();
    const decoded = await decode(last.endsWithStopId ? outputIds.slice(0, -1) : outputIds);
    const texts = [this.#firstRaw, ...this.pieces.slice(1).map(({ reply }) => reply.text)];
    // Markers that are control tokens are in no text but the decoded one.
    const split = this.#split?.(decoded ?? texts.join(''));
    return {
      promptIds: first.promptIds,
      outputIds,
      text: split?.text ?? joinTexts(texts, decoded),
      reasoning: split?.reasoning ?? '',
      toolCalls: [],
      finish: last.finish,
      endsWithStopId: last.endsWithStopId,
      usage: { ...first.usage, completion: outputIds.length },
    };
  }

  async #beginWith(reply: Reply, decode: Decode): Promise<void> {
    this.#firstRaw = reply.text;
    if (reply.reasoning === '') return;
    const raw = await decode(reply.outputIds);
    this.#split = raw === undefined ? undefined : learnSplit(raw, reply);
    if (raw === undefined || this.#split === undefined) this.#isWhole = true;
    else this.#firstRaw = raw;
  }

  #outputIds(): number[] {
    return this.pieces.flatMap(({ reply }) => reply.outputIds);
  }
}

function noPiece(): never {
  throw bug('An answer without a piece was taken for begun.');
}
