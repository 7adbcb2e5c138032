/**
 * Whether a log can be that of the server that answers. Pure. A log is found by name, by port, by whoever holds it; any of these may lead to
 * another one: a proxy's, that of an earlier server, a path that was not corrected. A log that contradicts the server proves nothing.
 */
import { countBits, isKnown } from '../../base/element-type.ts';
import { formatCount } from '../../base/units.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Account } from '../../diagnosis/account.ts';
import type { ServerFacts } from '../../engine/dialect.ts';

/** '' = nothing speaks against it. */
export function whyNotItsLog(engine: PlannedEngine, { facts: log, recognised }: Account, server: ServerFacts): string {
  if (recognised === 0) return 'it has no line of an inference server';
  if (log.engine !== undefined && log.engine !== engine) return `it is the log of ${log.engine}`;
  if (log.version !== undefined && server.engineVersion !== '' && log.version !== server.engineVersion)
    return `it is of version ${log.version}, and the server of ${server.engineVersion}`;
  // vLLM counts the tokens of hybrid models in two ways.
  const isPoolKnown = engine === 'sglang' && log.poolTokens !== undefined && server.poolTokens > 0;
  if (isPoolKnown && log.poolTokens !== server.poolTokens)
    return `its pool holds ${formatCount(log.poolTokens ?? 0)} tokens, and that of the server ${formatCount(server.poolTokens)}`;
  // A server that says FP8 of itself is not believed to be more for the sake of a log.
  const [logged, told] = [log.kvCacheDtype, server.kvCacheDtype].map((type) =>
    type !== undefined && isKnown(type) ? countBits(type) : undefined,
  );
  if (logged !== undefined && told !== undefined && told < logged)
    return `its KV cache is ${log.kvCacheDtype}, and that of the server ${server.kvCacheDtype}`;
  return '';
}
