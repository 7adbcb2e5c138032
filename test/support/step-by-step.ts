/**
 * The twin's rules played the slow way: one decode step at a time, everything counted anew from plain lists at every step. What
 * the twin jumps over is walked here, so the two must agree on every ending, time, retraction and sum. Open arrivals have no client's limit here.
 * Shared with the twin are the prefix tree (its own tests judge it) and the formula of a single step.
 */
import type { TwinLoad, TwinRequest } from '../../src/twin/load.ts';
import { type Match, PrefixTree } from '../../src/twin/prefix-tree.ts';
import { Sequence } from '../../src/twin/sequence.ts';
import type { TwinServer } from '../../src/twin/server.ts';
import { decodeBaseSeconds } from '../../src/twin/step-time.ts';
import type { TreeNode } from '../../src/twin/tree-node.ts';

export interface SlowEnding {
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

interface Plain {
  readonly sequence: Sequence;
  produced: number;
  /** Tokens with KV; what was taken for it from the pool is the pages of `taken`. */
  kv: number;
  taken: number;
  node: TreeNode | undefined;
  treeTokens: number;
  cached: number;
}

interface Part {
  readonly plain: Plain;
  readonly count: number;
  readonly before: number;
  readonly loaded: number;
  readonly last: boolean;
}

export function playStepByStep(server: TwinServer, load: TwinLoad): SlowResult {
  const slow = new StepByStep(server, load);
  slow.play();
  return slow.result;
}

class StepByStep {
  readonly result: SlowResult = {
    ...{ endings: [], retracted: [], seconds: 0, runningSeconds: 0, queuedSeconds: 0, contextSeconds: 0 },
    ...{ generatedTokens: 0, prefilledTokens: 0, decodeSteps: 0 },
  };
  readonly #server: TwinServer;
  readonly #load: TwinLoad;
  readonly #tree: PrefixTree;
  readonly #page: number;
  readonly #total: number;
  #sent = 0;
  #coming: { readonly request: TwinRequest; readonly at: number }[] = [];
  #waiting: Plain[] = [];
  #running: Plain[] = [];
  #partial: Plain | undefined;
  #now = 0;
  #ratio = 0;
  #full = false;

  constructor(server: TwinServer, load: TwinLoad) {
    this.#server = server;
    this.#load = load;
    this.#page = server.pageTokens;
    this.#total = Math.floor(server.poolTokens / this.#page) * this.#page;
    this.#tree = new PrefixTree({
      pageTokens: this.#page,
      evictWhole: server.rules.engine === 'sglang',
      hostTokens: server.hostTier?.tokens ?? 0,
    });
    if (server.rules.engine === 'sglang') this.#ratio = server.rules.newTokenRatio.initial;
  }

  play(): void {
    const { requests, arrivals } = this.#load;
    if (arrivals.kind === 'open') {
      const timed = requests.map((request, nth) => ({ request, at: arrivals.atSeconds[nth] ?? 0 }));
      this.#coming = timed.toSorted((a, b) => a.at - b.at);
    } else for (let at = 0; at < Math.min(arrivals.inFlight, requests.length); at++) this.#send();
    for (;;) {
      this.#arrive();
      if (this.#waiting.length === 0 && this.#running.length === 0 && this.#partial === undefined) {
        const next = this.#coming[0];
        if (next === undefined) break;
        this.#now = Math.max(this.#now, next.at);
        this.#full = false;
        if (this.#server.rules.engine === 'sglang') this.#ratio = this.#server.rules.newTokenRatio.initial;
        continue;
      }
      if (this.#server.rules.engine === 'sglang') this.#sglangStep(this.#server.rules);
      else this.#vllmStep(this.#server.rules.maxBatchedTokens);
    }
    Object.assign(this.result, { seconds: this.#now });
  }

  /** Closed loop: the next one, now; seen at the next step. */
  #send(): void {
    const request = this.#load.requests[this.#sent++];
    if (request !== undefined) this.#coming.push({ request, at: this.#now });
  }

  #arrive(): void {
    for (let next = this.#coming[0]; next !== undefined && next.at <= this.#now; next = this.#coming[0]) {
      this.#coming.shift();
      const limits = { totalTokens: this.#total - this.#page - 1, pageTokens: this.#page };
      const sequence = new Sequence(next.request, next.at, limits);
      const plain = { sequence, produced: 0, kv: 0, taken: 0, node: undefined, treeTokens: 0, cached: 0 };
      Object.assign(this.result, { queuedSeconds: this.result.queuedSeconds + this.#now - next.at });
      if (sequence.outputTokens < 1) this.#end(plain, 'refused');
      else this.#waiting.push(plain);
    }
  }

  #end(plain: Plain, ending: string): void {
    const { sequence, produced, cached } = plain;
    this.result.endings.push({ id: sequence.request.id, ending, produced, at: this.#now, cachedTokens: cached });
    if (this.#load.arrivals.kind === 'closed') this.#send();
  }

  #pages(tokens: number): number {
    return Math.ceil(tokens / this.#page) * this.#page;
  }

  #whole(tokens: number): number {
    return Math.floor(tokens / this.#page) * this.#page;
  }

  #known(plain: Plain): number {
    return plain.sequence.request.promptTokens + plain.produced;
  }

  #ahead(plain: Plain): number {
    return Math.min(plain.sequence.maxNewTokens - plain.produced, 4096);
  }

  /** Everybody who holds part of the pool: running, half computed, and those of the step that is being planned. */
  #free(extra: readonly Plain[] = []): number {
    let free = this.#total - this.#tree.heldTokens;
    const holders = new Set([...this.#running, ...(this.#partial === undefined ? [] : [this.#partial]), ...extra]);
    for (const plain of holders) free -= this.#pages(plain.taken) - plain.treeTokens;
    if (free < 0) throw new Error(`the pool is exceeded by ${-free}`);
    return free;
  }

  #available(extra: readonly Plain[] = []): number {
    return this.#free(extra) + this.#tree.evictableTokens;
  }

  #makeFree(tokens: number, extra: readonly Plain[] = []): void {
    const free = this.#free(extra);
    if (tokens > free) this.#tree.evict(tokens - free);
  }

  #match(plain: Plain, touch: boolean): Match {
    if (!this.#server.prefixCache) return { node: this.#tree.root, poolTokens: 0, hostNodes: [], hostTokens: 0 };
    const limit = this.#whole(this.#known(plain) - 1);
    return this.#tree.match(plain.sequence.path(limit), limit, touch);
  }

  #hold(plain: Plain, match: Match): void {
    this.#tree.lock(match.node);
    plain.node = match.node;
    plain.treeTokens = match.poolTokens;
    plain.kv = match.poolTokens;
    plain.taken = match.poolTokens;
  }

  #drop(plain: Plain, keep: boolean): void {
    if (keep && this.#server.prefixCache) {
      const limit = this.#whole(plain.kv);
      this.#tree.insert(plain.sequence.path(limit), limit);
    }
    if (plain.node !== undefined) this.#tree.unlock(plain.node);
    Object.assign(plain, { node: undefined, treeTokens: 0, kv: 0, taken: 0 });
  }

  /** Tokens of the pages that one more token for each running request opens. */
  #opens(): number {
    return this.#running.filter(({ kv }) => kv % this.#page === 0).length * this.#page;
  }

  #sglangStep(rules: TwinServer['rules'] & { engine: 'sglang' }): void {
    const parts = this.#sglangAdmit(rules);
    if (parts.length > 0) return this.#run(parts, rules.mixedChunk);
    if (this.#running.length > 0 && this.#opens() > this.#available()) this.#retract();
    if (this.#running.length > 0) this.#run([], true);
  }

  #sglangAdmit(rules: TwinServer['rules'] & { engine: 'sglang' }): Part[] {
    if (this.#partial === undefined && (this.#full || this.#waiting.length === 0)) return [];
    const slots = this.#server.maxRunningRequests - this.#running.length;
    if (slots <= 0 && this.#partial === undefined) {
      this.#full = true;
      return [];
    }
    const beside = rules.mixedChunk ? this.#opens() : 0;
    const decoding = rules.mixedChunk ? this.#running.length : 0;
    if (beside > this.#available()) return [];
    if (rules.policy === 'lpm' && this.#waiting.length <= 128) this.#sortByPrefix();
    const parts: Part[] = [];
    let promised = beside;
    for (const plain of this.#running) promised += this.#ahead(plain) * this.#ratio;
    let input = rules.maxPrefillTokens - decoding;
    let chunk = rules.chunkedPrefillTokens - decoding;
    const charge = (part: Part) => {
      parts.push(part);
      promised += this.#pages(part.count) + (part.last ? this.#ahead(part.plain) : 0);
      input -= this.#pages(part.count);
      chunk -= this.#pages(part.count);
    };
    const holders = () => parts.map(({ plain }) => plain);
    const left = (extra: readonly Plain[] = []) => this.#available([...holders(), ...extra]) - promised;
    let partial = this.#partial;
    if (partial !== undefined) {
      const rest = this.#known(partial) - partial.kv;
      const most = Math.min(chunk, this.#available() - beside + this.#pages(partial.kv) - partial.kv);
      const count = rest <= most ? rest : Math.max(0, this.#whole(most));
      if (count > 0) charge({ plain: partial, count, before: partial.kv, loaded: 0, last: count === rest });
      if (count === rest) partial = undefined;
    }
    let refused = false;
    while (this.#waiting.length > 0 && !this.#full) {
      const plain = this.#waiting[0] as Plain;
      if (parts.length >= slots) {
        refused = true;
        break;
      }
      if (chunk <= 0 || input <= 0) break;
      const match = this.#match(plain, true);
      const need = this.#known(plain) - match.poolTokens + this.#ahead(plain);
      if (need >= left()) {
        refused = true;
        break;
      }
      if (this.#pages(this.#known(plain) - match.poolTokens - match.hostTokens) >= input && parts.length > 0) break;
      this.#hold(plain, match);
      if (need >= left([plain])) {
        this.#drop(plain, false);
        refused = true;
        break;
      }
      const loaded = match.hostTokens >= 10 ? match.hostTokens : 0;
      const rest = this.#known(plain) - match.poolTokens - loaded;
      const fits = this.#pages(rest) <= chunk;
      if (!fits && (partial !== undefined || this.#whole(Math.min(chunk, rest)) <= 0)) {
        this.#drop(plain, false);
        break;
      }
      if (loaded > 0) {
        this.#makeFree(match.hostTokens, [...holders(), plain]);
        this.#tree.restore(match.hostNodes);
        this.#drop(plain, false);
        this.#hold(plain, { ...match, node: match.hostNodes.at(-1) as TreeNode, poolTokens: match.poolTokens + loaded });
      }
      plain.cached += plain.treeTokens;
      this.#waiting.shift();
      charge({ plain, count: fits ? rest : this.#whole(Math.min(chunk, rest)), before: plain.kv, loaded, last: fits });
      if (!fits) partial = plain;
      if (left() <= 0) {
        refused = true;
        break;
      }
    }
    if (refused && (parts.length > 0 || this.#running.length > 0)) this.#full = true;
    this.#partial = partial;
    const taking: Plain[] = holders();
    for (const { plain, before, count } of parts) {
      this.#makeFree(this.#pages(before + count) - this.#pages(before), taking);
      plain.taken = before + count;
    }
    return parts;
  }

  #sortByPrefix(): void {
    const ahead = new PrefixTree({ pageTokens: this.#page, evictWhole: true, hostTokens: 0 });
    const first: { plain: Plain; matched: number }[] = [];
    const second: { plain: Plain; matched: number }[] = [];
    for (const plain of this.#waiting) {
      const matched = this.#match(plain, true).poolTokens;
      const limit = this.#whole(this.#known(plain) - 1);
      const path = plain.sequence.path(limit);
      const isLater = matched <= 32 && ahead.match(path, limit, false).poolTokens >= 32;
      if (matched <= 32 && !isLater) ahead.insert(path, limit);
      (isLater ? second : first).push({ plain, matched });
    }
    const byMatch = (a: { matched: number }, b: { matched: number }) => b.matched - a.matched;
    this.#waiting = [...first.sort(byMatch), ...second.sort(byMatch)].map(({ plain }) => plain);
  }

  #retract(): void {
    const order = this.#running.toSorted(
      (a, b) => b.produced - a.produced || a.sequence.request.promptTokens - b.sequence.request.promptTokens,
    );
    let isFirst = true;
    while (order.length > 1 && (isFirst || this.#opens() > this.#available())) {
      isFirst = false;
      const victim = order.pop() as Plain;
      this.#running = this.#running.filter((plain) => plain !== victim);
      this.#drop(victim, false);
      this.#makeFree(Math.min(order.length * 20, this.#available()));
      this.#waiting.push(victim);
      this.result.retracted.push(victim.sequence.request.id);
    }
    this.#full = false;
    let [made, most] = [0, 0];
    const fits = this.#opens() <= this.#available();
    const survivors = fits ? order : [];
    for (const plain of survivors) {
      made += plain.produced;
      most += plain.sequence.maxNewTokens;
    }
    this.#ratio = Math.min(1, (made + 20 * survivors.length) / (most + 1));
    if (fits) return;
    for (const plain of order) {
      this.#running = [];
      this.#drop(plain, false);
      this.#end(plain, 'out-of-memory');
    }
  }

  #vllmStep(most: number): void {
    let isPressed = false;
    while (this.#opens() > this.#available()) {
      isPressed = true;
      const victim = this.#partial ?? (this.#running.pop() as Plain);
      if (victim === this.#partial) this.#partial = undefined;
      this.#drop(victim, true);
      this.#waiting.unshift(victim);
      this.result.retracted.push(victim.sequence.request.id);
    }
    const parts: Part[] = [];
    let budget = most - this.#running.length;
    const slots = this.#server.maxRunningRequests - this.#running.length;
    const add = (plain: Plain) => {
      const rest = this.#known(plain) - plain.kv;
      const count = Math.min(rest, budget);
      budget -= count;
      parts.push({ plain, count, before: plain.kv, loaded: 0, last: count === rest });
      this.#partial = count === rest ? undefined : plain;
    };
    if (this.#partial !== undefined && budget > 0) add(this.#partial);
    while (!isPressed && budget > 0 && parts.length < slots && this.#waiting.length > 0) {
      const plain = this.#waiting[0] as Plain;
      const holders = [...parts.map((part) => part.plain), plain];
      this.#hold(plain, this.#match(plain, false));
      const need = this.#pages(this.#known(plain)) - plain.treeTokens;
      if (need > this.#available(holders) - this.#opens()) {
        this.#drop(plain, false);
        break;
      }
      this.#makeFree(need, holders);
      plain.taken = this.#known(plain);
      plain.cached += plain.treeTokens;
      this.#waiting.shift();
      add(plain);
    }
    if (parts.length > 0 || this.#running.length > 0) this.#run(parts, true);
  }

  /** One step: its time, then what it has changed. */
  #run(parts: readonly Part[], decodes: boolean): void {
    const { stepTime, graphBatchSizes, hostTier } = this.#server;
    const deciding = decodes ? this.#running : [];
    const growing = parts.map(({ plain }) => plain);
    this.#makeFree(decodes ? this.#opens() : 0, growing);
    for (const plain of deciding) {
      plain.kv += 1;
      plain.taken = plain.kv;
    }
    let context = this.#running.reduce((sum, { kv }) => sum + kv, 0);
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
    const isHalf = this.#partial !== undefined && !growing.includes(this.#partial);
    if (isHalf) context += this.#partial?.kv ?? 0;
    const sums = this.result as { -readonly [key in keyof SlowResult]: SlowResult[key] };
    const inside = parts.length > 0 ? parts.length : isHalf ? 1 : 0;
    sums.runningSeconds += (this.#running.length + inside) * seconds;
    sums.queuedSeconds += this.#waiting.length * seconds;
    sums.contextSeconds += context * seconds;
    this.#now += seconds;
    if (deciding.length > 0) sums.decodeSteps += 1;
    sums.generatedTokens += deciding.length;
    if (deciding.length > 0 && this.#server.rules.engine === 'sglang') {
      const { floor, decayPerStep } = this.#server.rules.newTokenRatio;
      this.#ratio = Math.max(floor, this.#ratio - decayPerStep);
    }
    for (const plain of deciding) plain.produced += 1;
    for (const plain of [...deciding]) this.#finish(plain);
    for (const { plain, count, last } of parts) {
      plain.kv += count;
      sums.prefilledTokens += count;
      this.#share(plain);
      if (!last) continue;
      plain.produced += 1;
      sums.generatedTokens += 1;
      this.#running.push(plain);
      this.#finish(plain);
    }
  }

  #share(plain: Plain): void {
    if (!this.#server.prefixCache) return;
    const limit = this.#whole(plain.kv);
    const { node } = this.#tree.insert(plain.sequence.path(limit), limit);
    this.#tree.lock(node);
    if (plain.node !== undefined) this.#tree.unlock(plain.node);
    plain.node = node;
    plain.treeTokens = limit;
  }

  #finish(plain: Plain): void {
    if (plain.produced < plain.sequence.outputTokens) return;
    this.#running = this.#running.filter((other) => other !== plain);
    this.#drop(plain, true);
    this.#full = false;
    this.#end(plain, 'finished');
  }
}
