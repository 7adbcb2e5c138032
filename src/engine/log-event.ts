/**
 * What a line of an engine's log says, for the lines that Aerie reads numbers from. Pure data.
 * Sizes are GiB: both engines print "GB" and mean GiB. A line that is none of these is unknown, kept, and never fatal.
 */

export type GraphStage = 'decode' | 'prefill' | 'draft';

export type LogEvent =
  /** The flags as the engine took them: SGLang's are resolved, vLLM's are those that differ from the defaults. */
  | { readonly kind: 'arguments'; readonly values: Readonly<Record<string, string>> }
  | { readonly kind: 'version'; readonly version: string }
  | { readonly kind: 'weights-begin'; readonly freeGiB: number }
  | { readonly kind: 'weights-progress'; readonly done: number; readonly of: number }
  /** `freeGiB` is undefined for vLLM, which prints only what the weights took. */
  | { readonly kind: 'weights-end'; readonly freeGiB?: number; readonly usedGiB: number }
  | { readonly kind: 'kv-dtype'; readonly dtype: string }
  /** A line that is only ever printed where the KV cache has this type: a rewritten flag, a missing scale. */
  | { readonly kind: 'kv-hint'; readonly dtype: string }
  /** vLLM: what it found free for the pool. */
  | { readonly kind: 'pool-size'; readonly poolGiB: number }
  /** `poolGiB` is keys and values together; undefined where the line has no size. `dtype` '' where it has none. */
  | { readonly kind: 'pool'; readonly tokens: number; readonly poolGiB?: number; readonly dtype: string }
  | { readonly kind: 'pool-end'; readonly freeGiB: number }
  | { readonly kind: 'concurrency'; readonly contextTokens: number; readonly requests: number }
  | { readonly kind: 'graphs-begin'; readonly stage: GraphStage; readonly freeGiB?: number }
  | { readonly kind: 'graphs-progress'; readonly done: number; readonly of: number }
  | { readonly kind: 'graphs-end'; readonly stage: GraphStage; readonly usedGiB?: number; readonly freeGiB?: number }
  /** SGLang's line of what it serves with. `freeGiB` is there from 0.4.10 on. */
  | {
      readonly kind: 'capacity';
      readonly poolTokens: number;
      readonly chunkedPrefill: number;
      readonly maxRunningRequests: number;
      readonly contextTokens: number;
      readonly freeGiB?: number;
    }
  | { readonly kind: 'host-pool'; readonly hostGiB: number }
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'prefill';
      readonly newTokens: number;
      readonly cachedTokens: number;
      readonly running: number;
      readonly queued: number;
    }
  /** One reading of a server at work; `usage` is a share of the pool, `generated` tokens a second. */
  | {
      readonly kind: 'decode';
      readonly running: number;
      readonly queued: number;
      readonly usage: number;
      readonly generated: number;
      /** Tokens in the pool that running requests hold; undefined for vLLM. */
      readonly tokens?: number;
      /** Prompt tokens a second; undefined for SGLang, whose decode lines have none. */
      readonly prompted?: number;
    }
  | { readonly kind: 'retraction'; readonly requests: number };

/** A number as engines print it: `1,234,567`, `-1`, `0.30`; undefined for anything else. */
export function readNumber(text: string | undefined): number | undefined {
  if (text === undefined || !/^-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?$/i.test(text)) return undefined;
  return Number(text.replaceAll(',', ''));
}
