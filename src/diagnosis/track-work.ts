/**
 * What a server at work prints: readings, answers, retractions. Pure; keeps the last of each.
 * Aerie's own probes are neither activity nor progress: GET requests, the health check's prefill of one token, and SGLang's
 * warm-up request before it is ready.
 */
import type { LogEvent } from '../engine/log-event.ts';
import type { Answers, Sighting, Work } from './account.ts';

/** Half an hour of vLLM's lines, some minutes of SGLang's: enough to see a trend. */
export const WORK_KEPT = 180;
const RETRACTIONS_KEPT = 1000;

/** Requests that generate; other POST paths are an operator's. */
const ANSWER = /"POST (\/[\w/.-]+)[^"]*" (\d{3})/;
const GENERATES = /\/(completions|generate|messages|responses)$/;

export class WorkTrack {
  readonly work: Work[] = [];
  readonly retractions: Sighting[] = [];
  #good = 0;
  #refused = 0;
  #failed = 0;
  #last: Sighting | undefined;

  copy(): WorkTrack {
    const copy = new WorkTrack();
    copy.work.push(...this.work);
    copy.retractions.push(...this.retractions);
    copy.#good = this.#good;
    copy.#refused = this.#refused;
    copy.#failed = this.#failed;
    copy.#last = this.#last;
    return copy;
  }

  /** Returns whether it shows that the server does work for someone. */
  reading(event: Extract<LogEvent, { kind: 'decode' | 'prefill' }>, sighting: Sighting, isStarting: boolean): boolean {
    const { running, queued } = event;
    const isDecode = event.kind === 'decode';
    const isProbe = !isDecode && running === 0 && queued === 0 && (event.newTokens <= 1 || isStarting);
    // Lines that were passed over are read after the sampled ones among them: in their place.
    const place = this.work.findLastIndex(({ line }) => line <= sighting.line) + 1;
    this.work.splice(place, 0, {
      ...sighting,
      kind: event.kind,
      ...{ running, queued, isProbe },
      usage: isDecode ? event.usage : 0,
      generated: isDecode ? event.generated : 0,
      prompted: isDecode ? (event.prompted ?? 0) : event.newTokens,
    });
    if (this.work.length > WORK_KEPT) this.work.shift();
    if (isProbe) return false;
    return isDecode ? event.generated > 0 || (event.prompted ?? 0) > 0 : true;
  }

  /** The status of an answer to a request that generates; undefined for any other line. */
  answer(sighting: Sighting, isReady: boolean): number | undefined {
    const [, path = '', code = ''] = ANSWER.exec(sighting.text) ?? [];
    if (!GENERATES.test(path)) return undefined;
    // SGLang's warm-up asks /generate of itself before it says that it is ready.
    if (!isReady && path === '/generate' && this.work.every(({ isProbe }) => isProbe)) return undefined;
    const status = Number(code);
    if (status < 300) this.#good += 1;
    else if (status < 500) this.#refused += 1;
    else this.#failed += 1;
    this.#last = sighting;
    return status;
  }

  get hasAnswered(): boolean {
    return this.#last !== undefined;
  }

  retract(sighting: Sighting): void {
    this.retractions.push(sighting);
    if (this.retractions.length > RETRACTIONS_KEPT) this.retractions.shift();
  }

  answers(): Answers {
    return { good: this.#good, refused: this.#refused, failed: this.#failed, last: this.#last };
  }
}
