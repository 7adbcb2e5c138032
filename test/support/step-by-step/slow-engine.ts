/**
 * The twin's rules played the slow way: one decode step at a time, everything counted anew from plain lists at every step. What
 * the twin jumps over is walked here, so the two must agree on every ending, time, retraction and sum. Open arrivals have no client's limit here.
 * Shared with the twin are the prefix tree (its own tests judge it) and the formula of a single step.
 */
import type { TwinLoad, TwinRequest } from '../../../src/twin/load.ts';
import { type Match, PrefixTree } from '../../../src/twin/prefix-tree.ts';
import { Sequence } from '../../../src/twin/sequence.ts';
import type { TwinServer } from '../../../src/twin/server.ts';
import { decodeBaseSeconds } from '../../../src/twin/step-time.ts';
import type { TreeNode } from '../../../src/twin/tree-node.ts';

interface SlowEnding {
  readonly id: string;
  readonly ending: string;
  readonly produced: number;
  readonly at: number;
  readonly cachedTokens: number;
}

export interface SlowResult {
  readonly endings: SlowEnding[];
  readonly retracted: string[];
  readonly seconds: number;
  readonly runningSeconds: number;
  readonly queuedSeconds: number;
  readonly contextSeconds: number;
  readonly generatedTokens: number;
  readonly prefilledTokens: number;
  readonly decodeSteps: number;
}

export interface Plain {
  readonly sequence: Sequence;
  produced: number;
  /** Tokens with KV; what was taken for it from the pool is the pages of `taken`. */
  kv: number;
  taken: number;
  node: TreeNode | undefined;
  treeTokens: number;
  cached: number;
}

export interface Part {
  readonly plain: Plain;
  readonly count: number;
  readonly before: number;
  readonly loaded: number;
  readonly last: boolean;
}

export class SlowEngine {
  readonly result: SlowResult = {
    ...{ endings: [], retracted: [], seconds: 0, runningSeconds: 0, queuedSeconds: 0, contextSeconds: 0 },
    ...{ generatedTokens: 0, prefilledTokens: 0, decodeSteps: 0 },
  };
  readonly server: TwinServer;
  readonly load: TwinLoad;
  readonly tree: PrefixTree;
  readonly page: number;
  readonly total: number;
  sent = 0;
  coming: { readonly request: TwinRequest; readonly at: number }[] = [];
  waiting: Plain[] = [];
  running: Plain[] = [];
  partial: Plain | undefined;
  now = 0;
  ratio = 0;
  full = false;

  constructor(server: TwinServer, load: TwinLoad) {
    this.server = server;
    this.load = load;
    this.page = server.pageTokens;
    this.total = Math.floor(server.poolTokens / this.page) * this.page;
    this.tree = new PrefixTree({
      pageTokens: this.page,
      evictWhole: server.rules.engine === 'sglang',
      hostTokens: server.hostTier?.tokens ?? 0,
    });
    if (server.rules.engine === 'sglang') this.ratio = server.rules.newTokenRatio.initial;
  }

  /** Closed loop: the next one, now; seen at the next step. */
  send(): void {
    const request = this.load.requests[this.sent++];
    if (request !== undefined) this.coming.push({ request, at: this.now });
  }

  arrive(): void {
    for (let next = this.coming[0]; next !== undefined && next.at <= this.now; next = this.coming[0]) {
      this.coming.shift();
      const limits = { totalTokens: this.total - this.page - 1, pageTokens: this.page };
      const sequence = new Sequence(next.request, next.at, limits);
      const plain = { sequence, produced: 0, kv: 0, taken: 0, node: undefined, treeTokens: 0, cached: 0 };
      Object.assign(this.result, { queuedSeconds: this.result.queuedSeconds + this.now - next.at });
      if (sequence.outputTokens < 1) this.end(plain, 'refused');
      else this.waiting.push(plain);
    }
  }

  end(plain: Plain, ending: string): void {
    const { sequence, produced, cached } = plain;
    this.result.endings.push({ id: sequence.request.id, ending, produced, at: this.now, cachedTokens: cached });
    if (this.load.arrivals.kind === 'closed') this.send();
  }

  pages(tokens: number): number {
    return Math.ceil(tokens / this.page) * this.page;
  }

  whole(tokens: number): number {
    return Math.floor(tokens / this.page) * this.page;
  }

  known(plain: Plain): number {
    return plain.sequence.request.promptTokens + plain.produced;
  }

  ahead(plain: Plain): number {
    return Math.min(plain.sequence.maxNewTokens - plain.produced, 4096);
  }

  /** Everybody who holds part of the pool: running, half computed, and those of the step that is being planned. */
  free(extra: readonly Plain[] = []): number {
    let free = this.total - this.tree.heldTokens;
    const holders = new Set([...this.running, ...(this.partial === undefined ? [] : [this.partial]), ...extra]);
    for (const plain of holders) free -= this.pages(plain.taken) - plain.treeTokens;
    if (free < 0) throw new Error(`the pool is exceeded by ${-free}`);
    return free;
  }

  available(extra: readonly Plain[] = []): number {
    return this.free(extra) + this.tree.evictableTokens;
  }

  makeFree(tokens: number, extra: readonly Plain[] = []): void {
    const free = this.free(extra);
    if (tokens > free) this.tree.evict(tokens - free);
  }

  match(plain: Plain, touch: boolean): Match {
    if (!this.server.prefixCache) return { node: this.tree.root, poolTokens: 0, hostNodes: [], hostTokens: 0 };
    const limit = this.whole(this.known(plain) - 1);
    return this.tree.match(plain.sequence.path(limit), limit, touch);
  }

  hold(plain: Plain, match: Match): void {
    this.tree.lock(match.node);
    plain.node = match.node;
    plain.treeTokens = match.poolTokens;
    plain.kv = match.poolTokens;
    plain.taken = match.poolTokens;
  }

  drop(plain: Plain, keep: boolean): void {
    if (keep && this.server.prefixCache) {
      const limit = this.whole(plain.kv);
      this.tree.insert(plain.sequence.path(limit), limit);
    }
    if (plain.node !== undefined) this.tree.unlock(plain.node);
    Object.assign(plain, { node: undefined, treeTokens: 0, kv: 0, taken: 0 });
  }

  /** Tokens of the pages that one more token for each running request opens. */
  opens(): number {
    return this.running.filter(({ kv }) => kv % this.page === 0).length * this.page;
  }

  /** One step: its time, then what it has changed. */
  run(parts: readonly Part[], decodes: boolean): void {
    const { stepTime, graphBatchSizes, hostTier } = this.server;
    const deciding = decodes ? this.running : [];
    const growing = parts.map(({ plain }) => plain);
    this.makeFree(decodes ? this.opens() : 0, growing);
    for (const plain of deciding) {
      plain.kv += 1;
      plain.taken = plain.kv;
    }
    let context = this.running.reduce((sum, { kv }) => sum + kv, 0);
    let seconds = 0;
    for (const { count, before } of parts) {
      seconds += count * stepTime.prefill.perTokenSeconds + count * (before + count / 2) * stepTime.prefill.perTokenPairSeconds;
      context += before + count;
    }
    if (deciding.length > 0)
      seconds +=
        decodeBaseSeconds(stepTime, graphBatchSizes, deciding.length) +
        stepTime.perContextTokenSeconds * deciding.reduce((sum, { kv }) => sum + kv, 0);
    else seconds = Math.max(seconds, stepTime.prefill.leastSeconds);
    const loaded = parts.reduce((sum, part) => sum + part.loaded, 0);
    if (parts.length > 0) seconds = Math.max(seconds, loaded * (hostTier?.loadBackSecondsPerToken ?? 0));
    const isHalf = this.partial !== undefined && !growing.includes(this.partial);
    if (isHalf) context += this.partial?.kv ?? 0;
    const sums = this.result as { -readonly [key in keyof SlowResult]: SlowResult[key] };
    const inside = parts.length > 0 ? parts.length : isHalf ? 1 : 0;
    sums.runningSeconds += (this.running.length + inside) * seconds;
    sums.queuedSeconds += this.waiting.length * seconds;
    sums.contextSeconds += context * seconds;
    this.now += seconds;
    if (deciding.length > 0) sums.decodeSteps += 1;
    sums.generatedTokens += deciding.length;
    if (deciding.length > 0 && this.server.rules.engine === 'sglang') {
      const { floor, decayPerStep } = this.server.rules.newTokenRatio;
      this.ratio = Math.max(floor, this.ratio - decayPerStep);
    }
    for (const plain of deciding) plain.produced += 1;
    for (const plain of [...deciding]) this.finish(plain);
    for (const { plain, count, last } of parts) {
      plain.kv += count;
      sums.prefilledTokens += count;
      this.share(plain);
      if (!last) continue;
      plain.produced += 1;
      sums.generatedTokens += 1;
      this.running.push(plain);
      this.finish(plain);
    }
  }

  share(plain: Plain): void {
    if (!this.server.prefixCache) return;
    const limit = this.whole(plain.kv);
    const { node } = this.tree.insert(plain.sequence.path(limit), limit);
    this.tree.lock(node);
    if (plain.node !== undefined) this.tree.unlock(plain.node);
    plain.node = node;
    plain.treeTokens = limit;
  }

  finish(plain: Plain): void {
    if (plain.produced < plain.sequence.outputTokens) return;
    this.running = this.running.filter((other) => other !== plain);
    this.drop(plain, true);
    this.full = false;
    this.end(plain, 'finished');
  }
}
