/** A launch of the lookalike that serves in a test's own process: a clock that the test moves, and its log as lines. */
import type { EngineLife } from '../../src/programs/lookalike/life.ts';
import type { LookalikeClock } from '../../src/programs/lookalike/clock.ts';
import { findGpu } from '../../src/capacity/gpus.ts';
import { findKnownModel } from '../../src/capacity/known-models.ts';
import { planLaunch } from '../../src/capacity/plan-launch.ts';
import { readFacts } from '../../src/capacity/read-facts.ts';
import { readModelConfig } from '../../src/capacity/read-model-config.ts';

export interface HandClock extends LookalikeClock {
  /** Runs all timers that are due by then, in order; each may set others. */
  playTo(ms: number): Promise<void>;
  /** How often a timer has fired. */
  wakes(): number;
}

export function handClock(): HandClock {
  let now = 0;
  let fired = 0;
  let timers: { at: number; act: () => void }[] = [];
  return {
    now: () => now,
    elapsed: () => now,
    after(ms, act) {
      const timer = { at: now + Math.max(0, ms), act };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    async playTo(ms) {
      for (;;) {
        await Promise.resolve();
        const next = timers.filter(({ at }) => at <= ms).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        timers = timers.filter((timer) => timer !== next);
        now = next.at;
        fired += 1;
        next.act();
        await new Promise((resolve) => setImmediate(resolve)); // what was promised is told before the next timer
      }
      now = ms;
    },
    wakes: () => fired,
  };
}

export interface PlayedLife extends EngineLife {
  readonly clock: HandClock;
  readonly lines: { readonly text: string; readonly rank: number | undefined; readonly at: number }[];
}

/** Kimi-K2.5 INT4 on 8 × RTX PRO 6000 with the story's facts: the printed pools. */
const FACTS = readFacts({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04 }).facts;

export function kimiLife(words: readonly string[], over: Partial<Omit<EngineLife, 'clock'>> = {}): PlayedLife {
  const { engine = 'sglang', version = engine === 'sglang' ? '0.5.8' : '0.16.0' } = over;
  const known = findKnownModel('moonshotai/Kimi-K2.5');
  if (known === undefined) throw new Error('the table has no Kimi-K2.5');
  const shape = readModelConfig(known);
  const gpu = findGpu('NVIDIA RTX PRO 6000 Blackwell Server Edition');
  const observations = engine === 'sglang' ? [{ facts: FACTS, source: 'the story' }] : [];
  const { launch, prediction } = planLaunch({ engine, version, shape, gpu, flags: words, observations });
  const clock = handClock();
  const lines: PlayedLife['lines'] = [];
  return {
    ...{ engine, version, launch, prediction, shape, gpu, clock, lines },
    wall: () => new Date(clock.elapsed()),
    log: (text, rank) => void lines.push({ text, rank, at: clock.elapsed() }),
    phase: () => 'serving',
    isReady: () => true,
    canPrefill: () => true,
    dieOutOfMemory: (newTokens) => {
      throw new Error(`out of memory in a prefill of ${newTokens} tokens`);
    },
    ...over,
  };
}

export const STORY_088 = ['--tp', '8', '--mem-fraction-static', '0.88', '--kv-cache-dtype', 'bf16'];
export const STORY_090 = ['--tp', '8', '--mem-fraction-static', '0.90', '--kv-cache-dtype', 'fp8_e4m3'];
