/** One request inside the engine: what it has produced, and which part of its KV the tree holds for it. */
import { ownKey, type Segment, type TwinRequest } from './load.ts';
import type { TreeNode } from './tree-node.ts';

export class Sequence {
  readonly request: TwinRequest;
  readonly arrivedAt: number;
  /** `max_tokens` after the server's own limit: prompt and answer must fit the pool. */
  readonly maxNewTokens: number;
  readonly outputTokens: number;
  /** Tokens generated up to the last time it joined or left the batch; inside the batch: `Batch.producedBy`. */
  produced = 0;
  /** Tokens whose KV is there, while it is being prefilled. */
  filled = 0;
  node: TreeNode | undefined;
  treeTokens = 0;
  cachedTokens = 0;
  firstTokenAt: number | undefined;
  /** Step count at which it would have produced nothing, while in the batch. */
  origin = 0;
  joinOrder = -1;
  readonly #pageTokens: number;
  readonly #sharedPath: Segment[] = [];
  #sharedTokens = 0;
  readonly #ownKey: string;

  constructor(request: TwinRequest, arrivedAt: number, limits: { readonly totalTokens: number; readonly pageTokens: number }) {
    this.request = request;
    this.arrivedAt = arrivedAt;
    this.maxNewTokens = Math.min(request.maxNewTokens, limits.totalTokens - request.promptTokens);
    this.outputTokens = Math.min(request.outputTokens, this.maxNewTokens);
    this.#pageTokens = limits.pageTokens;
    this.#ownKey = this.#alignShared(limits.pageTokens) + ownKey(request.id);
  }

  /** Prompt and what was generated: all that must be in the pool before the next token. */
  get knownTokens(): number {
    return this.request.promptTokens + this.produced;
  }

  /** The tree's name of its first `tokens` tokens. */
  path(tokens: number): Segment[] {
    return [...this.#sharedPath, { key: this.#ownKey, tokens: Math.max(0, tokens - this.#sharedTokens) }];
  }

  wholePages(tokens: number): number {
    return tokens - (tokens % this.#pageTokens);
  }

  pagesOf(tokens: number): number {
    return Math.ceil(tokens / this.#pageTokens) * this.#pageTokens;
  }

  /** A page belongs to the segment that ends in it last; a segment without a page of its own lends its name to the next. */
  #alignShared(pageTokens: number): string {
    let [end, covered, lent] = [0, 0, ''];
    for (const { key, tokens } of this.request.shared) {
      end = Math.min(end + tokens, this.request.promptTokens);
      const aligned = end - (end % pageTokens);
      if (aligned > covered) {
        this.#sharedPath.push({ key: lent + key, tokens: aligned - covered });
        [covered, lent] = [aligned, ''];
      } else lent += `${key}\n`;
    }
    this.#sharedTokens = covered;
    return lent;
  }
}
