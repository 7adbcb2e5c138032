/** vLLM's rules for the slow walk. */
import type { Part, Plain, SlowEngine } from './slow-engine.ts';

export function vllmStep(engine: SlowEngine, most: number): void {
  let isPressed = false;
  while (engine.opens() > engine.available()) {
    isPressed = true;
    const victim = engine.partial ?? (engine.running.pop() as Plain);
    if (victim === engine.partial) engine.partial = undefined;
    engine.drop(victim, true);
    engine.waiting.unshift(victim);
    engine.result.retracted.push(victim.sequence.request.id);
  }
  const parts: Part[] = [];
  let budget = most - engine.running.length;
  const slots = engine.server.maxRunningRequests - engine.running.length;
  const add = (plain: Plain) => {
    const rest = engine.known(plain) - plain.kv;
    const count = Math.min(rest, budget);
    budget -= count;
    parts.push({ plain, count, before: plain.kv, loaded: 0, last: count === rest });
    engine.partial = count === rest ? undefined : plain;
  };
  if (engine.partial !== undefined && budget > 0) add(engine.partial);
  while (!isPressed && budget > 0 && parts.length < slots && engine.waiting.length > 0) {
    const plain = engine.waiting[0] as Plain;
    const holders = [...parts.map((part) => part.plain), plain];
    engine.hold(plain, engine.match(plain, false));
    const need = engine.pages(engine.known(plain)) - plain.treeTokens;
    if (need > engine.available(holders) - engine.opens()) {
      engine.drop(plain, false);
      break;
    }
    engine.makeFree(need, holders);
    plain.taken = engine.known(plain);
    plain.cached += plain.treeTokens;
    engine.waiting.shift();
    add(plain);
  }
  if (parts.length > 0 || engine.running.length > 0) engine.run(parts, true);
}
