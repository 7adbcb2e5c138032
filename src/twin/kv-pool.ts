/**
 * The KV pool in tokens (whole pages): free + what requests hold for themselves + what the tree holds.
 * Promise: free is never negative. What is asked for beyond free and evictable is a bug of the scheduler, and thrown as one.
 */
import { bug } from '../base/errors.ts';
import { type Match, PrefixTree } from './prefix-tree.ts';
import type { Sequence } from './sequence.ts';
import type { TwinServer } from './server.ts';

const NOTHING: readonly never[] = [];

export class KvPool {
  readonly tokens: number;
  readonly pageTokens: number;
  readonly tree: PrefixTree;
  readonly #cached: boolean;
  #private = 0;

  constructor(server: TwinServer) {
    this.pageTokens = server.pageTokens;
    this.tokens = server.poolTokens - (server.poolTokens % server.pageTokens);
    this.#cached = server.prefixCache;
    this.tree = new PrefixTree({
      pageTokens: server.pageTokens,
      evictWhole: server.rules.engine === 'sglang',
      hostTokens: server.hostTier?.tokens ?? 0,
    });
  }

  get free(): number {
    return this.tokens - this.#private - this.tree.heldTokens;
  }

  /** What can be had by evicting everything that nobody runs on. */
  get available(): number {
    return this.free + this.tree.evictableTokens;
  }

  /** What the engine prints as `#token`: neither free nor evictable. */
  get used(): number {
    return this.tokens - this.available;
  }

  /** The longest prefix that is there; the last token is always computed. */
  match(sequence: Sequence, touch: boolean): Match {
    if (!this.#cached) return { node: this.tree.root, poolTokens: 0, hostNodes: NOTHING, hostTokens: 0 };
    const limit = sequence.wholePages(sequence.knownTokens - 1);
    return this.tree.match(sequence.path(limit), limit, touch);
  }

  /** Takes whole pages for requests, evicting what it must. */
  take(tokens: number): void {
    this.makeFree(tokens);
    if (this.free < tokens) throw bug('the twin took more of the KV pool than there is', { tokens, free: this.free });
    this.#private += tokens;
  }

  makeFree(tokens: number): void {
    const missing = tokens - this.free;
    if (missing > 0) this.tree.evict(missing);
  }

  /** The prefix that a match found becomes the sequence's own to run on. */
  hold(sequence: Sequence, match: Match): void {
    this.tree.lock(match.node);
    sequence.node = match.node;
    sequence.treeTokens = match.poolTokens;
    sequence.filled = match.poolTokens;
  }

  /** The host part of a match comes back into the pool. */
  loadBack(sequence: Sequence, match: Match): void {
    const last = match.hostNodes.at(-1);
    if (last === undefined) return;
    this.makeFree(match.hostTokens);
    this.tree.restore(match.hostNodes);
    this.tree.lock(last);
    this.tree.unlock(match.node);
    sequence.node = last;
    sequence.treeTokens += match.hostTokens;
    sequence.filled = sequence.treeTokens;
  }

  /** After a prefill: its first `tokens` tokens are for others too. */
  share(sequence: Sequence, tokens: number): void {
    if (!this.#cached) return;
    const before = sequence.node;
    const limit = sequence.wholePages(tokens);
    const { node } = this.tree.insert(sequence.path(limit), limit);
    this.tree.lock(node);
    if (before !== undefined) this.tree.unlock(before);
    // Its pages of these tokens are the tree's from here on, or doubled and free again: either way no longer private.
    this.#private -= limit - sequence.treeTokens;
    sequence.node = node;
    sequence.treeTokens = limit;
  }

  /**
   * Ends a sequence's stay: `kvTokens` of it are there, `takenTokens` were taken for it (pages of a whole prompt may be taken
   * ahead). With `keep` what it computed stays in the tree for others.
   */
  release(sequence: Sequence, { kvTokens, takenTokens, keep }: { kvTokens: number; takenTokens: number; keep: boolean }): void {
    const taken = sequence.pagesOf(takenTokens);
    if (keep && this.#cached) {
      const limit = sequence.wholePages(kvTokens);
      this.tree.insert(sequence.path(limit), limit);
    }
    this.#private -= taken - sequence.treeTokens;
    if (sequence.node !== undefined) this.tree.unlock(sequence.node);
    sequence.node = undefined;
    sequence.treeTokens = 0;
    sequence.filled = 0;
  }
}
