/**
 * Small levers that leave more memory beside the pool, cheapest first, each with what it sets. None changes the numerics. Pure data
 * made for one launch: what is set lower already is left out.
 */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import { isAtLeast } from '../../engine/version.ts';
import type { FlagValue } from '../../spec/run.ts';
import { flagValue } from './changes.ts';
import type { Flags, RecoveryQuestion } from './recovery.ts';

export interface Setting {
  readonly name: string;
  readonly to: FlagValue;
  /** What it does, without figures. */
  readonly because: string;
}

/** Requests that may run at once; 256 is the field's rule, lower ones cost speed. */
const CAPS = [256, 128, 64] as const;
/** Below this a prefill pass is too short to keep the GPU at work. */
const LEAST_CHUNK = 1024;
/** What the engines take where the flag is not given and no log says it. */
const USUAL_CHUNK = 8192;
const USUAL_RUNNING = { sglang: 2048, vllm: 256 } as const;

/** Combinations to try, in this order; the first is nothing at all. */
export function memoryLevers(question: RecoveryQuestion, flags: Flags): readonly (readonly Setting[])[] {
  const { engine } = question;
  const caps = capsFor(question, flags);
  const chunks = chunksFor(question, flags);
  const [cap, ...lower] = caps.map((most) => runningCap(engine, most));
  const [half, quarter] = chunks.map((tokens) => prefillChunk(engine, tokens));
  const graphs = engine === 'sglang' && caps[0] !== undefined ? graphCap(question, caps[0]) : undefined;
  const found: (readonly (Setting | undefined)[])[] = [[], [cap], [graphs], [half], [cap, half], [graphs, half]];
  const shorter = shorterContext(question, flags);
  if (shorter !== undefined) found.push([shorter], [cap, shorter], [cap, half, shorter]);
  found.push(...lower.flatMap((one) => [[one], [one, half]]), [lower.at(-1) ?? cap, quarter]);
  // Steps without graphs are slow: 62 ms instead of 11 at small batches. Only where nothing else helps.
  found.push([cap, half, noGraphs(engine)]);
  return unique(found.map((settings) => settings.filter((setting) => setting !== undefined)));
}

/** Never below what is in flight here; and only below what the launch has. */
function capsFor({ engine, tries, limits }: RecoveryQuestion, flags: Flags): number[] {
  const name = engine === 'sglang' ? 'max-running-requests' : 'max-num-seqs';
  const given = flagValue(engine, flags, name);
  const printed = tries.at(-1)?.verdict.facts.maxRunningRequests;
  const has = typeof given === 'number' ? given : (printed ?? USUAL_RUNNING[engine]);
  const inFlight = limits?.inFlight ?? 0;
  const roomy = Math.ceil(inFlight / 64) * 64;
  const wanted = roomy > CAPS[0] ? [roomy] : CAPS.filter((cap) => cap >= inFlight);
  return wanted.filter((cap) => cap < has);
}

function chunksFor({ engine, tries }: RecoveryQuestion, flags: Flags): number[] {
  const name = engine === 'sglang' ? 'chunked-prefill-size' : 'max-num-batched-tokens';
  const given = flagValue(engine, flags, name);
  const has = typeof given === 'number' ? given : (tries.at(-1)?.verdict.facts.chunkedPrefill ?? USUAL_CHUNK);
  if (has <= 0) return [USUAL_CHUNK / 2]; // prompts are not cut at all
  return [Math.floor(has / 2), Math.floor(has / 4)].filter((tokens) => tokens >= LEAST_CHUNK);
}

/** vLLM starts only where a request of the whole context fits its cache; the run's longest request is enough. */
function shorterContext({ engine, limits, tries }: RecoveryQuestion, flags: Flags): Setting | undefined {
  const longest = limits?.longestRequestTokens;
  const given = flagValue(engine, flags, 'max-model-len') ?? tries.at(-1)?.verdict.facts.contextTokens;
  if (engine !== 'vllm' || longest === undefined || (typeof given === 'number' && given <= longest)) return undefined;
  return { name: 'max-model-len', to: longest, because: `the run's longest request has ${longest} tokens` };
}

function runningCap(engine: PlannedEngine, most: number): Setting {
  return engine === 'sglang'
    ? { name: 'max-running-requests', to: most, because: 'a smaller table of requests, and no graphs above that batch' }
    : { name: 'max-num-seqs', to: most, because: 'less for the sampler, and no graphs above that batch' };
}

function graphCap({ version }: RecoveryQuestion, most: number): Setting {
  // Renamed in 0.5.14; the old name is understood by all.
  const name = isAtLeast(version, [0, 5, 14]) === true ? 'cuda-graph-max-bs-decode' : 'cuda-graph-max-bs';
  return { name, to: most, because: 'graphs for fewer batch sizes' };
}

function prefillChunk(engine: PlannedEngine, tokens: number): Setting {
  return {
    name: engine === 'sglang' ? 'chunked-prefill-size' : 'max-num-batched-tokens',
    to: tokens,
    because: 'a prefill pass of fewer tokens needs less at once',
  };
}

function noGraphs(engine: PlannedEngine): Setting {
  return {
    name: engine === 'sglang' ? 'disable-cuda-graph' : 'enforce-eager',
    to: true,
    because: 'no graphs: steps are slower, and nothing else makes room',
  };
}

function unique(all: readonly (readonly Setting[])[]): (readonly Setting[])[] {
  const byText = new Map(all.map((settings) => [JSON.stringify(settings), settings]));
  return [...byText.values()];
}
