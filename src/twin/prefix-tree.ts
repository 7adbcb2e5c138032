/**
 * The prefix cache as a tree of segments: which prompts share what, what of it lies in the KV pool, what in host memory.
 *
 * SGLang's radix tree and vLLM's block hashes by one structure. A node is a run of whole pages of one segment. Locked nodes
 * (those of running requests) are never evicted. Eviction takes the least recently used leaf: whole (SGLang), or from its
 * end page by page (vLLM's free list). With a host tier each node is copied on insertion (write_through) and may outlive its
 * place in the pool; the copy is a prefix for later, never room for a running request.
 * Promise: `heldTokens` = tokens of all nodes in the pool, `evictableTokens` = those of the unlocked ones.
 */
import { LeafHeap } from './leaf-heap.ts';
import type { Segment } from './load.ts';
import { depthOf, isHostLeaf, isPoolLeaf, newNode, type TreeNode } from './tree-node.ts';

export interface Match {
  /** The last node that is in the pool. */
  readonly node: TreeNode;
  readonly poolTokens: number;
  /** Nodes after it that are only in host memory, in order. */
  readonly hostNodes: readonly TreeNode[];
  readonly hostTokens: number;
}

export interface TreeOptions {
  readonly pageTokens: number;
  readonly evictWhole: boolean;
  readonly hostTokens: number;
}

export class PrefixTree {
  readonly root: TreeNode = newNode(undefined, '', 0);
  readonly #options: TreeOptions;
  readonly #poolLeaves = new LeafHeap<TreeNode>(isPoolLeaf);
  readonly #hostLeaves = new LeafHeap<TreeNode>(isHostLeaf);
  #time = 0;
  #held = 0;
  #evictable = 0;
  #hostUsed = 0;

  constructor(options: TreeOptions) {
    this.#options = options;
    this.root.inPool = true;
    this.root.locks = 1;
  }

  get heldTokens(): number {
    return this.#held;
  }

  get evictableTokens(): number {
    return this.#evictable;
  }

  get hostTokens(): number {
    return this.#hostUsed;
  }

  /** How much of the first `limit` tokens is there. Without `touch` nothing changes but where a node is cut in two. */
  match(path: readonly Segment[], limit: number, touch: boolean): Match {
    let node = this.root;
    let poolTokens = 0;
    let hostTokens = 0;
    const hostNodes: TreeNode[] = [];
    let last = node;
    for (const next of this.#walk(path, limit)) {
      node = next;
      if (touch) this.#touch(node);
      if (node.inPool) {
        poolTokens += node.tokens;
        last = node;
      } else {
        hostNodes.push(node);
        hostTokens += node.tokens;
      }
    }
    return { node: last, poolTokens, hostNodes, hostTokens };
  }

  /**
   * Puts a path that the caller holds in the pool under the tree's care. Returns the last node and how many of its tokens were there
   * already (computed twice: the caller's copy of them is free again).
   */
  insert(path: readonly Segment[], limit: number): { node: TreeNode; doubled: number } {
    let node = this.root;
    let doubled = 0;
    for (const next of this.#walk(path, limit)) {
      node = next;
      this.#touch(node);
      if (node.inPool) doubled += node.tokens;
      else this.#enterPool(node);
    }
    return { node: this.#grow(node, path, limit), doubled };
  }

  /** Brings host nodes back into the pool; the caller has made room for them. */
  restore(nodes: readonly TreeNode[]): void {
    for (const node of nodes) this.#enterPool(node);
  }

  lock(node: TreeNode): void {
    for (let at: TreeNode = node; at.parent !== undefined; at = at.parent) {
      if (at.locks === 0) this.#evictable -= at.tokens;
      at.locks += 1;
    }
  }

  unlock(node: TreeNode): void {
    for (let at: TreeNode = node; at.parent !== undefined; at = at.parent) {
      at.locks -= 1;
      if (at.locks > 0) continue;
      this.#evictable += at.tokens;
      this.#offer(at);
    }
  }

  /** Frees at least `tokens` if that much is unlocked; returns what it freed. */
  evict(tokens: number): number {
    let freed = 0;
    while (freed < tokens) {
      const leaf = this.#poolLeaves.oldest();
      if (leaf === undefined) break;
      freed += this.#options.evictWhole ? this.#leavePool(leaf) : this.#trim(leaf, tokens - freed);
    }
    return freed;
  }

  *#walk(path: readonly Segment[], limit: number): Generator<TreeNode> {
    let node = this.root;
    let left = limit;
    for (const { key, tokens } of path) {
      let ahead = Math.min(tokens, left);
      while (ahead > 0) {
        const child = node.children?.get(key);
        if (child === undefined) return;
        node = child.tokens > ahead ? this.#split(child, ahead) : child;
        ahead -= node.tokens;
        left -= node.tokens;
        yield node;
      }
      if (left === 0) return;
    }
  }

  /** Adds what the path has beyond `node`, which is where a walk along it ended. */
  #grow(node: TreeNode, path: readonly Segment[], limit: number): TreeNode {
    let skip = depthOf(node);
    let left = limit - skip;
    let at = node;
    for (const { key, tokens } of path) {
      const taken = Math.min(skip, tokens);
      skip -= taken;
      const fresh = Math.min(tokens - taken, left);
      if (fresh <= 0) continue;
      at = this.#add(at, key, fresh);
      left -= fresh;
    }
    return at;
  }

  #add(parent: TreeNode, key: string, tokens: number): TreeNode {
    const node = newNode(parent, key, tokens);
    parent.children ??= new Map();
    parent.children.set(key, node);
    node.touched = ++this.#time;
    this.#enterPool(node);
    this.#copyToHost(node);
    return node;
  }

  /** Cuts a node after `tokens`; the first part is returned, the second becomes its child. */
  #split(node: TreeNode, tokens: number): TreeNode {
    const { parent, key } = node;
    if (parent === undefined) return node;
    const head: TreeNode = { ...newNode(parent, key, tokens), locks: node.locks, touched: node.touched };
    head.inPool = node.inPool;
    head.onHost = node.onHost;
    head.poolChildren = node.inPool ? 1 : 0;
    head.children = new Map([[key, node]]);
    parent.children?.set(key, head);
    node.parent = head;
    node.tokens -= tokens;
    return head;
  }

  #touch(node: TreeNode): void {
    node.touched = ++this.#time;
    this.#offer(node);
  }

  #offer(node: TreeNode): void {
    if (isPoolLeaf(node)) this.#poolLeaves.push(node);
    if (isHostLeaf(node)) this.#hostLeaves.push(node);
  }

  #enterPool(node: TreeNode): void {
    if (node.inPool) return;
    node.inPool = true;
    this.#held += node.tokens;
    if (node.locks === 0) this.#evictable += node.tokens;
    if (node.parent !== undefined) node.parent.poolChildren += 1;
    this.#offer(node);
  }

  #leavePool(node: TreeNode): number {
    node.inPool = false;
    this.#held -= node.tokens;
    this.#evictable -= node.tokens;
    const { parent } = node;
    if (parent !== undefined) {
      parent.poolChildren -= 1;
      this.#offer(parent);
    }
    if (node.onHost) this.#offer(node);
    else this.#forget(node);
    return node.tokens;
  }

  #trim(node: TreeNode, wanted: number): number {
    const { pageTokens } = this.#options;
    const taken = Math.ceil(wanted / pageTokens) * pageTokens;
    if (taken >= node.tokens) return this.#leavePool(node);
    node.tokens -= taken;
    this.#held -= taken;
    this.#evictable -= taken;
    this.#poolLeaves.push(node);
    return taken;
  }

  /** A node that is nowhere any more takes with it whatever hangs below it on the host. */
  #forget(node: TreeNode): void {
    node.parent?.children?.delete(node.key);
    if (node.children === undefined) return;
    for (const child of node.children.values()) {
      if (child.onHost) this.#hostUsed -= child.tokens;
      child.onHost = false;
      this.#forget(child);
    }
  }

  #copyToHost(node: TreeNode): void {
    const room = this.#options.hostTokens;
    if (node.tokens > room) return;
    while (this.#hostUsed + node.tokens > room) {
      const oldest = this.#hostLeaves.oldest();
      if (oldest === undefined) return; // all of the host copies belong to nodes that are still in the pool
      oldest.onHost = false;
      this.#hostUsed -= oldest.tokens;
      const { parent } = oldest;
      this.#forget(oldest);
      if (parent !== undefined) this.#offer(parent);
    }
    node.onHost = true;
    this.#hostUsed += node.tokens;
  }
}
