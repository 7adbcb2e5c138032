/** A launch of the lookalike that serves in a test's own process: a clock that the test moves, and its log as lines. */
import { findGpu } from '../../src/capacity/gpus.ts';
import { findKnownModel } from '../../src/capacity/known-models.ts';
import { planLaunch } from '../../src/capacity/plan-launch.ts';
import { readFacts } from '../../src/capacity/read-facts.ts';
import { readModelConfig } from '../../src/capacity/read-model-config.ts';

/** As the lookalike's own, but it stands until it is played. */
export interface HandClock {
  now(): number;
  elapsed(): number;
  after(ms: number, act: () => void): () => void;
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

export interface PlayedLine {
  readonly text: string;
  readonly rank: number | undefined;
  readonly at: number;
}
export type PlayedLife = ReturnType<typeof kimiLife>;

export interface LifeChange {
  readonly engine?: 'sglang' | 'vllm';
  readonly version?: string;
  readonly canPrefill?: (newTokens: number) => boolean;
}

/** Kimi-K2.5 INT4 on 8 × RTX PRO 6000 with the story's facts: the printed pools. */
const FACTS = readFacts({ weightsGiBPerGpu: 72.33, freeBeforeLoadGiB: 94.04 }).facts;

export function kimiLife(words: readonly string[], over: LifeChange = {}) {
  const { engine = 'sglang', version = engine === 'sglang' ? '0.5.8' : '0.16.0' } = over;
  const known = findKnownModel('moonshotai/Kimi-K2.5');
  if (known === undefined) throw new Error('the table has no Kimi-K2.5');
  const shape = readModelConfig(known);
  const gpu = findGpu('NVIDIA RTX PRO 6000 Blackwell Server Edition');
  const observations = engine === 'sglang' ? [{ facts: FACTS, source: 'the story' }] : [];
  const { launch, prediction } = planLaunch({ engine, version, shape, gpu, flags: words, observations });
  const clock = handClock();
  const lines: PlayedLine[] = [];
  return {
    ...{ engine, version, launch, prediction, shape, gpu, clock, lines },
    wall: () => new Date(clock.elapsed()),
    log: (text: string, rank?: number) => void lines.push({ text, rank, at: clock.elapsed() }),
    phase: () => 'serving',
    isReady: () => true,
    canPrefill: (_newTokens: number) => true,
    dieOutOfMemory: (newTokens: number): never => {
      throw new Error(`out of memory in a prefill of ${newTokens} tokens`);
    },
    ...over,
  };
}

export const STORY_088 = ['--tp', '8', '--mem-fraction-static', '0.88', '--kv-cache-dtype', 'bf16'];
export const STORY_090 = ['--tp', '8', '--mem-fraction-static', '0.90', '--kv-cache-dtype', 'fp8_e4m3'];
