/** SGLang's rules for the slow walk: admission, lpm, retraction. */
import { PrefixTree } from '../../../src/twin/prefix-tree.ts';
import type { SglangRules } from '../../../src/twin/server.ts';
import type { TreeNode } from '../../../src/twin/tree-node.ts';
import type { Part, Plain, SlowEngine } from './slow-engine.ts';

export function sglangStep(engine: SlowEngine, rules: SglangRules): void {
  const parts = sglangAdmit(engine, rules);
  if (parts.length > 0) return engine.run(parts, rules.mixedChunk);
  if (engine.running.length > 0 && engine.opens() > engine.available()) retract(engine);
  if (engine.running.length > 0) engine.run([], true);
}

function sglangAdmit(engine: SlowEngine, rules: SglangRules): Part[] {
  if (engine.partial === undefined && (engine.full || engine.waiting.length === 0)) return [];
  const slots = engine.server.maxRunningRequests - engine.running.length;
  if (slots <= 0 && engine.partial === undefined) {
    engine.full = true;
    return [];
  }
  const beside = rules.mixedChunk ? engine.opens() : 0;
  const decoding = rules.mixedChunk ? engine.running.length : 0;
  if (beside > engine.available()) return [];
  if (rules.policy === 'lpm' && engine.waiting.length <= 128) sortByPrefix(engine);
  const parts: Part[] = [];
  let promised = beside;
  for (const plain of engine.running) promised += engine.ahead(plain) * engine.ratio;
  let input = rules.maxPrefillTokens - decoding;
  let chunk = rules.chunkedPrefillTokens - decoding;
  const charge = (part: Part) => {
    parts.push(part);
    promised += engine.pages(part.count) + (part.last ? engine.ahead(part.plain) : 0);
    input -= engine.pages(part.count);
    chunk -= engine.pages(part.count);
  };
  const holders = () => parts.map(({ plain }) => plain);
  const left = (extra: readonly Plain[] = []) => engine.available([...holders(), ...extra]) - promised;
  let partial = engine.partial;
  if (partial !== undefined) {
    const rest = engine.known(partial) - partial.kv;
    const most = Math.min(chunk, engine.available() - beside + engine.pages(partial.kv) - partial.kv);
    const count = rest <= most ? rest : Math.max(0, engine.whole(most));
    if (count > 0) charge({ plain: partial, count, before: partial.kv, loaded: 0, last: count === rest });
    if (count === rest) partial = undefined;
  }
  let refused = false;
  while (engine.waiting.length > 0 && !engine.full) {
    const plain = engine.waiting[0] as Plain;
    if (parts.length >= slots) {
      refused = true;
      break;
    }
    if (chunk <= 0 || input <= 0) break;
    const match = engine.match(plain, true);
    const need = engine.known(plain) - match.poolTokens + engine.ahead(plain);
    if (need >= left()) {
      refused = true;
      break;
    }
    if (engine.pages(engine.known(plain) - match.poolTokens - match.hostTokens) >= input && parts.length > 0) break;
    engine.hold(plain, match);
    if (need >= left([plain])) {
      engine.drop(plain, false);
      refused = true;
      break;
    }
    const loaded = match.hostTokens >= 10 ? match.hostTokens : 0;
    const rest = engine.known(plain) - match.poolTokens - loaded;
    const fits = engine.pages(rest) <= chunk;
    if (!fits && (partial !== undefined || engine.whole(Math.min(chunk, rest)) <= 0)) {
      engine.drop(plain, false);
      break;
    }
    if (loaded > 0) {
      engine.makeFree(match.hostTokens, [...holders(), plain]);
      engine.tree.restore(match.hostNodes);
      engine.drop(plain, false);
      engine.hold(plain, { ...match, node: match.hostNodes.at(-1) as TreeNode, poolTokens: match.poolTokens + loaded });
    }
    plain.cached += plain.treeTokens;
    engine.waiting.shift();
    charge({ plain, count: fits ? rest : engine.whole(Math.min(chunk, rest)), before: plain.kv, loaded, last: fits });
    if (!fits) partial = plain;
    if (left() <= 0) {
      refused = true;
      break;
    }
  }
  if (refused && (parts.length > 0 || engine.running.length > 0)) engine.full = true;
  engine.partial = partial;
  const taking: Plain[] = holders();
  for (const { plain, before, count } of parts) {
    engine.makeFree(engine.pages(before + count) - engine.pages(before), taking);
    plain.taken = before + count;
  }
  return parts;
}

function sortByPrefix(engine: SlowEngine): void {
  const ahead = new PrefixTree({ pageTokens: engine.page, evictWhole: true, hostTokens: 0 });
  const first: { plain: Plain; matched: number }[] = [];
  const second: { plain: Plain; matched: number }[] = [];
  for (const plain of engine.waiting) {
    const matched = engine.match(plain, true).poolTokens;
    const limit = engine.whole(engine.known(plain) - 1);
    const path = plain.sequence.path(limit);
    const isLater = matched <= 32 && ahead.match(path, limit, false).poolTokens >= 32;
    if (matched <= 32 && !isLater) ahead.insert(path, limit);
    (isLater ? second : first).push({ plain, matched });
  }
  const byMatch = (a: { matched: number }, b: { matched: number }) => b.matched - a.matched;
  engine.waiting = [...first.sort(byMatch), ...second.sort(byMatch)].map(({ plain }) => plain);
}

function retract(engine: SlowEngine): void {
  const order = engine.running.toSorted(
    (a, b) => b.produced - a.produced || a.sequence.request.promptTokens - b.sequence.request.promptTokens,
  );
  let isFirst = true;
  while (order.length > 1 && (isFirst || engine.opens() > engine.available())) {
    isFirst = false;
    const victim = order.pop() as Plain;
    engine.running = engine.running.filter((plain) => plain !== victim);
    engine.drop(victim, false);
    engine.makeFree(Math.min(order.length * 20, engine.available()));
    engine.waiting.push(victim);
    engine.result.retracted.push(victim.sequence.request.id);
  }
  engine.full = false;
  let [made, most] = [0, 0];
  const fits = engine.opens() <= engine.available();
  const survivors = fits ? order : [];
  for (const plain of survivors) {
    made += plain.produced;
    most += plain.sequence.maxNewTokens;
  }
  engine.ratio = Math.min(1, (made + 20 * survivors.length) / (most + 1));
  if (fits) return;
  for (const plain of order) {
    engine.running = [];
    engine.drop(plain, false);
    engine.end(plain, 'out-of-memory');
  }
}
