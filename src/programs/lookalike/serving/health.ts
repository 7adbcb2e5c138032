/**
 * `/health` as the engines have it. SGLang asks its scheduler for a token and looks each second whether anything came back: 200 with
 * an empty body after a second, 503 after twenty. vLLM asks nobody, so that a hang does not show.
 */
import { isAtLeast } from '../../../engine/version.ts';
import type { EngineLife } from '../life.ts';
import type { Serving } from './serving.ts';
import { healthFailedLine } from './sglang-lines.ts';

/** `SGLANG_HEALTH_CHECK_TIMEOUT`, and how often it looks. */
const PATIENCE_SECONDS = 20;
const LOOK_SECONDS = 1;

export async function answerHealth(serving: Serving): Promise<200 | 503> {
  const { life } = serving;
  const isFrom = (...least: [number, number, number]) => isAtLeast(life.version, least) ?? true;
  if (!life.isReady()) {
    if (life.engine === 'sglang' && life.phase() === 'draining')
      life.log('Health check request received during shutdown. Returning 503.');
    return 503;
  }
  if (life.engine === 'vllm' || serving.lies || !isFrom(0, 4, 7)) return 200;
  if (serving.isSick && !isFrom(0, 5, 2)) return 503; // it never asked again
  const hasAnswer = await askScheduler(serving);
  serving.isSick = !hasAnswer;
  return hasAnswer ? 200 : 503;
}

async function askScheduler({ life, scheduler, log }: Serving): Promise<boolean> {
  const { clock } = life;
  const askedAt = clock.elapsed();
  // Idle, it computes one token for the probe, and prints that batch; at work the next batch's result answers.
  const isComputed = scheduler.isIdle && !scheduler.isHung;
  if (isComputed) log.hear(PROBE);
  for (let looks = 1; looks <= PATIENCE_SECONDS / LOOK_SECONDS; looks++) {
    await new Promise<void>((look) => clock.after(LOOK_SECONDS * 1000 - ((clock.elapsed() - askedAt) % 1000), look));
    if (isComputed || scheduler.quietSeconds() * 1000 < clock.elapsed() - askedAt) return true;
  }
  const [waited, quiet] = [clock.elapsed() - askedAt, scheduler.quietSeconds() * 1000];
  const heardAt = Number.isFinite(quiet) ? quiet : clock.elapsed(); // never heard: since its start
  life.log(healthFailedLine(PATIENCE_SECONDS, timeAgo(life, waited), timeAgo(life, heardAt)));
  return false;
}

const PROBE = {
  kind: 'prefill',
  batch: { at: 0, newSequences: 1, newTokens: 1, cachedTokens: 0, running: 0, queued: 0, usedTokens: 0 },
  pendingTokens: 0,
} as const;

function timeAgo(life: EngineLife, ms: number): string {
  const at = new Date(life.wall().getTime() - ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}
