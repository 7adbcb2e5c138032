/**
 * What the scheduler does → the lines that its engine prints, and the figures that its metrics show. SGLang's gauges are set when a
 * batch is printed and are stale in between; vLLM's figures are those of the moment, and a line comes each ten seconds.
 */
import type { EngineLife } from '../life.ts';
import { addTo, countEnded, type Figures, noFigures } from './figures.ts';
import type { DecodeReading, ScheduledEvent, SchedulerNow } from './scheduled-event.ts';
import { decodeLine, type LineContext, outOfPoolLine, prefillLine, retractionLine, throughputOf } from './sglang-lines.ts';
import { statsLine } from './vllm-lines.ts';

export interface WorkLog {
  readonly figures: Figures;
  hear(event: ScheduledEvent): void;
  /** A generation request was taken in: vLLM's line of ten seconds comes from now on. */
  wake(): void;
  /** Brings up to date what the engine itself shows of the moment: nothing in SGLang, whose gauges are those of its last line. */
  look(): void;
}

/** `VLLM_LOG_STATS_INTERVAL`. */
const STATS_MS = 10_000;

export interface WorkLogRequest {
  readonly life: EngineLife;
  readonly poolTokens: number;
  /** The scheduler's own figures now, without waking it where it hangs. */
  readonly now: () => SchedulerNow;
}

export function openWorkLog(request: WorkLogRequest): WorkLog {
  return request.life.engine === 'sglang' ? openSglangLog(request) : openVllmLog(request);
}

function openSglangLog({ life, poolTokens }: WorkLogRequest): WorkLog {
  const { version, launch, clock } = life;
  const context: LineContext = { version, poolTokens, largestGraph: launch.graphBatches.at(-1) ?? 0 };
  const figures = noFigures();
  let lastPrefill = { at: clock.elapsed(), tokens: 0 };

  function prefill({ batch, pendingTokens }: Extract<ScheduledEvent, { kind: 'prefill' }>): void {
    const gap = (clock.elapsed() - lastPrefill.at) / 1000;
    const inputPerSecond = gap > 0 ? lastPrefill.tokens / gap : 0;
    lastPrefill = { at: clock.elapsed(), tokens: batch.newTokens };
    life.log(prefillLine({ ...batch, pendingTokens, inputPerSecond }, context), 0);
    const found = batch.newTokens + batch.cachedTokens;
    figures.hitRate = found > 0 ? batch.cachedTokens / found : 0;
    figures.prefillTokens += batch.newTokens;
    figures.prefillCachedTokens += batch.cachedTokens;
    // As its line says: those that ran before it.
    Object.assign(figures, { running: batch.running, queued: batch.queued, usedTokens: batch.usedTokens });
  }
  function decode(reading: DecodeReading): void {
    life.log(decodeLine(reading, context), 0);
    const { running, queued, usedTokens, ratio } = reading;
    Object.assign(figures, { running, queued, usedTokens, ratio, generatedPerSecond: throughputOf(reading) });
    figures.decodeTokens += reading.generatedTokens;
  }
  return {
    figures,
    wake() {},
    look() {},
    hear(event) {
      if (event.kind === 'prefill') prefill(event);
      else if (event.kind === 'decode') decode(event.reading);
      else if (event.kind === 'retracted') {
        figures.retracted += event.requests;
        for (let rank = 0; rank < launch.tp; rank++) life.log(retractionLine(event, context), rank);
      } else if (event.kind === 'first-token') addTo(figures.firstTokens, event.afterSeconds);
      else {
        if (event.ended.ending === 'out-of-memory') life.log(outOfPoolLine(event.id, context), 0);
        countEnded(figures, event.ended);
        figures.promptTokens += event.ended.promptTokens;
        figures.generatedTokens += event.ended.produced;
      }
    },
  };
}

function openVllmLog({ life, poolTokens, now }: WorkLogRequest): WorkLog {
  const { clock, version } = life;
  const figures = noFigures();
  let isAwake = false;
  let before = { at: 0, prompt: 0, generated: 0 };

  function look(): SchedulerNow {
    const moment = now();
    Object.assign(figures, {
      ...{ running: moment.running, queued: moment.queued, usedTokens: moment.usedTokens },
      ...{ generatedTokens: moment.generatedTokens, hitRate: hitRateOf(moment) },
    });
    return moment;
  }
  function begin(): void {
    before = { at: clock.elapsed(), prompt: figures.promptTokens, generated: figures.generatedTokens };
    clock.after(STATS_MS, tell);
  }
  function tell(): void {
    const { running, queued: waiting, usedTokens, generatedTokens } = look();
    const seconds = (clock.elapsed() - before.at) / 1000;
    const promptPerSecond = (figures.promptTokens - before.prompt) / seconds;
    const generatedPerSecond = (generatedTokens - before.generated) / seconds;
    const rest = { running, waiting, preemptions: figures.retracted, usage: usedTokens / poolTokens, hitRate: figures.hitRate };
    life.log(statsLine({ promptPerSecond, generatedPerSecond, ...rest }, version));
    // One line of zeros after the last request, and then silence.
    if (running + waiting + promptPerSecond + generatedPerSecond > 0) begin();
    else isAwake = false;
  }
  return {
    figures,
    look,
    wake() {
      if (isAwake) return;
      isAwake = true;
      look();
      begin();
    },
    hear(event) {
      if (event.kind === 'retracted') figures.retracted += event.requests;
      else if (event.kind === 'first-token') {
        figures.promptTokens += event.promptTokens;
        addTo(figures.firstTokens, event.afterSeconds);
      } else if (event.kind === 'ended') countEnded(figures, event.ended);
    },
  };
}

const hitRateOf = ({ cachedTokens, promptTokens }: SchedulerNow): number => (promptTokens > 0 ? cachedTokens / promptTokens : 0);
