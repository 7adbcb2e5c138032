/** A whole load, one step at a time. */
import type { TwinLoad } from '../../../src/twin/load.ts';
import type { TwinServer } from '../../../src/twin/server.ts';
import { SlowEngine, type SlowResult } from './slow-engine.ts';
import { sglangStep } from './slow-sglang.ts';
import { vllmStep } from './slow-vllm.ts';

export function playStepByStep(server: TwinServer, load: TwinLoad): SlowResult {
  const engine = new SlowEngine(server, load);
  const { requests, arrivals } = engine.load;
  if (arrivals.kind === 'open') {
    const timed = requests.map((request, nth) => ({ request, at: arrivals.atSeconds[nth] ?? 0 }));
    engine.coming = timed.toSorted((a, b) => a.at - b.at);
  } else for (let at = 0; at < Math.min(arrivals.inFlight, requests.length); at++) engine.send();
  for (;;) {
    engine.arrive();
    if (engine.waiting.length === 0 && engine.running.length === 0 && engine.partial === undefined) {
      const next = engine.coming[0];
      if (next === undefined) break;
      engine.now = Math.max(engine.now, next.at);
      engine.full = false;
      if (engine.server.rules.engine === 'sglang') engine.ratio = engine.server.rules.newTokenRatio.initial;
      continue;
    }
    if (engine.server.rules.engine === 'sglang') sglangStep(engine, engine.server.rules);
    else vllmStep(engine, engine.server.rules.maxBatchedTokens);
  }
  Object.assign(engine.result, { seconds: engine.now });
  return engine.result;
}
