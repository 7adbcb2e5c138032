/** Tokens a second of a launch without playing it: how many run comes from the mean live context, never from the final length. Pure. */
import { stepSeconds } from '../../twin/calibrate.ts';
import type { TwinRequest } from '../../twin/load.ts';
import { predictRunning } from '../../twin/predict-running.ts';
import type { TwinServer } from '../../twin/server.ts';

export interface Steady {
  readonly running: number;
  readonly limitedBy: 'client' | 'max-running-requests' | 'pool';
  readonly liveContextTokens: number;
  readonly tokensPerSecond: number;
}

/** Microseconds instead of a played run: for tables of many launches. */
export function findSteady(server: TwinServer, requests: readonly TwinRequest[], inFlight: number): Steady {
  const { running: likely, limitedBy, liveContextTokens } = predictRunning(server, requests, inFlight);
  const running = Math.max(0, likely);
  if (running < 1) return { running: 0, limitedBy, liveContextTokens, tokensPerSecond: 0 };
  const decode = stepSeconds(server.stepTime, server.graphBatchSizes, {
    running: Math.round(running),
    contextTokens: running * liveContextTokens,
  });
  const [prompts, answers] = requests.reduce(
    ([prompt, answer], { promptTokens, outputTokens }) => [prompt + promptTokens, answer + outputTokens],
    [0, 0],
  );
  // Each generated token carries its share of the prompt that was computed for it.
  const prefill = (running * prompts * server.stepTime.prefill.perTokenSeconds) / Math.max(1, answers);
  return { running, limitedBy, liveContextTokens, tokensPerSecond: running / (decode + prefill) };
}
