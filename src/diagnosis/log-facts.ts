/**
 * The figures that a log holds, wherever they stand in it. Pure: lines in, one account out; bounded by the samples kept.
 * Promises: the whole log counts, never its tail; with several ranks the least free memory and the most weights are kept,
 * because the engine itself sizes by the worst rank; figures of a later start replace those of an earlier one.
 */

import { type LogLine, peelLine } from '../engine/log-envelope.ts';
import type { LogEvent } from '../engine/log-event.ts';
import { parseSglangMessage } from '../engine/sglang/log-lines.ts';
import { parseVllmMessage } from '../engine/vllm/log-lines.ts';

export type LoggedEngine = 'sglang' | 'vllm';

/** One reading of a server at work. Rates are tokens a second over the whole engine. */
export interface LoadSample {
  readonly line: number;
  readonly running: number;
  readonly queued: number;
  readonly usage: number;
  readonly generated: number;
  readonly tokens?: number;
}

export interface LogFacts {
  readonly lines: number;
  /** Undefined until a line of one of the engines has been met. */
  readonly engine?: LoggedEngine;
  readonly version?: string;
  readonly arguments: Readonly<Record<string, string>>;
  readonly freeBeforeLoadGiB?: number;
  readonly freeAfterLoadGiB?: number;
  readonly weightsGiBPerGpu?: number;
  /** As the engine says it, `torch.bfloat16`; what it really is, whatever the flags asked for. */
  readonly kvCacheDtype?: string;
  /** What a line beside it gives away of the type: the engine set it itself, or says that FP8 runs without scales. */
  readonly kvTypeHint?: string;
  readonly poolTokens?: number;
  readonly poolGiB?: number;
  /** Tokens of the line that `poolGiB` is from; the capacity line may count otherwise (sliding windows, drafts). */
  readonly allocatedTokens?: number;
  readonly freeAfterPoolGiB?: number;
  readonly graphsGiB?: number;
  readonly freeAfterGraphsGiB?: number;
  readonly maxRunningRequests?: number;
  readonly contextTokens?: number;
  readonly chunkedPrefill?: number;
  readonly hostPoolGiB?: number;
  readonly isReady: boolean;
  readonly retractions: number;
  readonly samples: readonly LoadSample[];
}

/** Readings kept: eleven hours of SGLang at one line in four seconds; a longer log keeps every second, fourth … one. */
const MOST_SAMPLES = 10_000;

/** Reads a log line by line. `engine` where it is known beforehand; else the first line that is one engine's decides. */
export class LogFactsReader {
  readonly #facts: { -readonly [K in keyof LogFacts]: LogFacts[K] } = {
    lines: 0,
    arguments: {},
    isReady: false,
    retractions: 0,
    samples: [],
  };
  #supposed: LoggedEngine | undefined;
  #samples: LoadSample[] = [];
  #seen = 0;
  #keepEvery = 1;

  constructor(engine?: LoggedEngine) {
    if (engine !== undefined) this.#facts.engine = engine;
  }

  copy(): LogFactsReader {
    const copy = new LogFactsReader();
    Object.assign(copy.#facts, this.#facts);
    copy.#supposed = this.#supposed;
    copy.#samples = [...this.#samples];
    copy.#seen = this.#seen;
    copy.#keepEvery = this.#keepEvery;
    return copy;
  }

  /**
   * One line, without its line feed. Returns what it says, undefined where it is a line that Aerie does not read.
   * `number`: its place in the log, where lines that say nothing were left out.
   */
  add(raw: string, number = this.#facts.lines + 1): { readonly line: LogLine; readonly event: LogEvent | undefined } {
    this.#facts.lines = number;
    const line = peelLine(raw);
    const event = this.#parse(line.message);
    if (event !== undefined) this.#take(event);
    return { line, event };
  }

  /** What a line says, without taking it into account. */
  look(raw: string): LogEvent | undefined {
    const { message } = peelLine(raw);
    const { engine } = this.#facts;
    if (engine !== undefined) return engine === 'sglang' ? parseSglangMessage(message) : parseVllmMessage(message);
    return parseSglangMessage(message) ?? parseVllmMessage(message);
  }

  /** What the look of a line says about who wrote it; a figure that only one engine prints says it better. */
  suppose(engine: LoggedEngine): void {
    this.#supposed ??= engine;
  }

  read(): LogFacts {
    const engine = this.#facts.engine ?? this.#supposed;
    return { ...this.#facts, ...(engine === undefined ? {} : { engine }), samples: this.#samples };
  }

  #parse(message: string): LogEvent | undefined {
    const { engine } = this.#facts;
    if (engine === 'sglang') return parseSglangMessage(message);
    if (engine === 'vllm') return parseVllmMessage(message);
    const [sglang, vllm] = [parseSglangMessage(message), parseVllmMessage(message)];
    // Progress bars and uvicorn's lines look alike in both.
    if (sglang !== undefined && vllm === undefined) this.#facts.engine = 'sglang';
    if (vllm !== undefined && sglang === undefined && vllm.kind !== 'ready') this.#facts.engine = 'vllm';
    return sglang ?? vllm;
  }

  #take(event: LogEvent): void {
    const facts = this.#facts;
    switch (event.kind) {
      case 'arguments':
        facts.arguments = { ...facts.arguments, ...event.values };
        break;
      case 'version':
        facts.version = event.version;
        break;
      case 'weights-begin':
        if (facts.freeAfterLoadGiB !== undefined) this.#beginAnew();
        facts.freeBeforeLoadGiB = least(facts.freeBeforeLoadGiB, event.freeGiB);
        break;
      case 'weights-end':
        facts.weightsGiBPerGpu = most(facts.weightsGiBPerGpu, event.usedGiB);
        if (event.freeGiB !== undefined) facts.freeAfterLoadGiB = least(facts.freeAfterLoadGiB, event.freeGiB);
        break;
      case 'kv-dtype':
        facts.kvCacheDtype = event.dtype;
        break;
      case 'kv-hint':
        facts.kvTypeHint = event.dtype;
        break;
      case 'pool-size':
        facts.poolGiB = least(facts.poolGiB, event.poolGiB);
        break;
      case 'pool':
        this.#takePool(event);
        break;
      default:
        this.#takeLater(event);
    }
  }

  /** A draft model has a pool of its own after the target's, with other bytes per token: the first one is the capacity. */
  #takePool(event: Extract<LogEvent, { kind: 'pool' }>): void {
    const facts = this.#facts;
    if (event.dtype !== '') facts.kvCacheDtype ??= event.dtype;
    if (facts.poolTokens !== undefined && facts.poolTokens <= event.tokens) return;
    facts.poolTokens = event.tokens;
    if (event.poolGiB === undefined) return;
    facts.poolGiB = event.poolGiB;
    facts.allocatedTokens = event.tokens;
  }

  #takeLater(event: LogEvent): void {
    const facts = this.#facts;
    switch (event.kind) {
      case 'pool-end':
        facts.freeAfterPoolGiB = least(facts.freeAfterPoolGiB, event.freeGiB);
        break;
      case 'graphs-end':
        if (event.stage === 'decode' && event.usedGiB !== undefined) facts.graphsGiB = most(facts.graphsGiB, event.usedGiB);
        if (event.freeGiB !== undefined) facts.freeAfterGraphsGiB = least(facts.freeAfterGraphsGiB, event.freeGiB);
        break;
      case 'capacity':
        facts.poolTokens = event.poolTokens;
        facts.maxRunningRequests = event.maxRunningRequests;
        facts.contextTokens = event.contextTokens;
        facts.chunkedPrefill = event.chunkedPrefill;
        if (event.freeGiB !== undefined) facts.freeAfterGraphsGiB = event.freeGiB;
        break;
      case 'host-pool':
        facts.hostPoolGiB = most(facts.hostPoolGiB, event.hostGiB);
        break;
      case 'ready':
        facts.isReady = true;
        break;
      case 'retraction':
        facts.retractions += 1;
        break;
      case 'decode':
        this.#sample(event);
        break;
      default:
    }
  }

  #sample({ running, queued, usage, generated, tokens }: Extract<LogEvent, { kind: 'decode' }>): void {
    this.#seen += 1;
    if (this.#seen % this.#keepEvery !== 0) return;
    this.#samples.push({
      ...{ line: this.#facts.lines, running, queued, usage, generated },
      ...(tokens === undefined ? {} : { tokens }),
    });
    if (this.#samples.length < MOST_SAMPLES) return;
    this.#keepEvery *= 2;
    this.#samples = this.#samples.filter((_, at) => at % 2 === 1);
  }

  /** The same log file, another start of the server: what the first one measured is not this one's. */
  #beginAnew(): void {
    const { lines, engine, version, arguments: given } = this.#facts;
    for (const key of Object.keys(this.#facts)) delete (this.#facts as Record<string, unknown>)[key];
    Object.assign(this.#facts, { lines, engine, version, arguments: given, isReady: false, retractions: 0, samples: [] });
    this.#samples = [];
    this.#seen = 0;
    this.#keepEvery = 1;
  }
}

function least(before: number | undefined, now: number): number {
  return before === undefined ? now : Math.min(before, now);
}

function most(before: number | undefined, now: number): number {
  return before === undefined ? now : Math.max(before, now);
}
