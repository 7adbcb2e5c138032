/** How many requests run at once, without playing anything: for tables of many candidates, and to check the twin against. */
import { liveContextTokens, meanAheadTokens } from './lengths.ts';
import type { TwinRequest } from './load.ts';
import { RESERVE_CLIP_TOKENS, type TwinServer } from './server.ts';

export interface RunningEstimate {
  readonly running: number;
  readonly limitedBy: 'client' | 'max-running-requests' | 'pool';
  /** Mean context of a running request: what divides the pool. The mean final length does not. */
  readonly liveContextTokens: number;
}

export function predictRunning(server: TwinServer, requests: readonly TwinRequest[], inFlight: number): RunningEstimate {
  const context = liveContextTokens(requests);
  const byPool = poolLimit(server, requests, context);
  const running = Math.min(inFlight, server.maxRunningRequests, byPool);
  const limitedBy = running === inFlight ? 'client' : running === server.maxRunningRequests ? 'max-running-requests' : 'pool';
  return { running, limitedBy, liveContextTokens: context };
}

function poolLimit({ rules, poolTokens }: TwinServer, requests: readonly TwinRequest[], context: number): number {
  // vLLM fills its pool and preempts; a few per cent are lost to blocks and to what waits to be computed again.
  if (rules.engine === 'vllm') return (0.98 * poolTokens) / context;
  const count = Math.max(1, requests.length);
  const prompt = requests.reduce((sum, { promptTokens }) => sum + promptTokens, 0) / count;
  const wanted = requests.reduce((sum, { maxNewTokens }) => sum + Math.min(maxNewTokens, RESERVE_CLIP_TOKENS), 0) / count;
  // The next one must fit whole, and so must the reserve; the ratio has long fallen to its floor.
  return (poolTokens - prompt - wanted) / (context + rules.newTokenRatio.floor * meanAheadTokens(requests, RESERVE_CLIP_TOKENS));
}
