/**
 * One generation: prompt ids in, answer ids out, on one sequence of the context.
 *
 * Promises: the ids are every id the model chose, the end token included; `cachedTokens` is what the sequence already
 * held; an aborted signal, the request's or the program's, ends it within one step and frees the sequence. It throws the signal's reason
 * when aborted; anything else it throws is a fault of the engine, and the sequence is emptied before its next use.
 */
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { type LoadedModel, STEP_TOKENS } from './model.ts';
import { StopStrings } from './stop-strings.ts';

export interface GenerationRequest {
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  /** 0 = greedy. */
  readonly temperature: number;
  /** 1 = off. */
  readonly topP: number;
  /** 0 = off. */
  readonly topK: number;
  /** 0 = off. */
  readonly minP: number;
  readonly seed: number;
  readonly stop: readonly string[];
  /** Go on after the end token, until `maxTokens`: for measurements. */
  readonly ignoreEos: boolean;
}

/** `end` = the model's own end token, `string` = a stop string, `length` = maxTokens. */
export type Finish =
  | { readonly kind: 'end'; readonly id: number }
  | { readonly kind: 'string'; readonly text: string }
  | { readonly kind: 'length' };

export interface Generation {
  readonly outputIds: readonly number[];
  /** Without the end token, and cut before the stop string. */
  readonly text: string;
  readonly finish: Finish;
  readonly cachedTokens: number;
}

export async function generate(model: LoadedModel, request: GenerationRequest, signal: AbortSignal): Promise<Generation> {
  const slot = await model.pool.take(request.promptIds, signal);
  const sequence = model.sequences[slot];
  try {
    if (sequence === undefined) throw new Error(`there is no sequence ${slot}`);
    return await generateOn(model, sequence, request, signal);
  } catch (thrown) {
    if (!signal.aborted && !model.stopping.aborted) await sequence?.clearHistory().catch(() => undefined); // its state is not known any more
    throw thrown;
  } finally {
    model.pool.release(slot);
  }
}

async function generateOn(
  model: LoadedModel,
  sequence: LlamaContextSequence,
  request: GenerationRequest,
  signal: AbortSignal,
): Promise<Generation> {
  const throwIfGivenUp = () => {
    signal.throwIfAborted();
    model.stopping.throwIfAborted();
  };
  const cachedTokens = await prefill(sequence, request.promptIds, throwIfGivenUp);
  const outputIds: number[] = [];
  const stops = new StopStrings(request.stop);
  let finish: Finish = { kind: 'length' };
  for await (const token of sequence.evaluate(asTokens(request.promptIds.slice(sequence.nextTokenIndex)), samplingOf(request))) {
    throwIfGivenUp();
    const id: number = token;
    outputIds.push(id);
    model.activity.generated += 1;
    const isEnd = model.endIds.has(id) && !request.ignoreEos;
    const stopped = isEnd ? undefined : stops.push(model.decoder.bytesOf(id));
    if (isEnd) finish = { kind: 'end', id };
    if (stopped !== undefined) finish = { kind: 'string', text: stopped };
    if (finish.kind !== 'length' || outputIds.length >= request.maxTokens) break;
  }
  return { outputIds, text: textOf(model, outputIds, finish), finish, cachedTokens };
}

/** Brings the sequence to all but the rest of the prompt that the first step evaluates; says how many tokens it had already. */
async function prefill(
  sequence: LlamaContextSequence,
  promptIds: readonly number[],
  throwIfGivenUp: () => void,
): Promise<number> {
  // The last token is always evaluated: only that gives the probabilities of the next one. Shifting is off (second
  // argument): moved cells are an approximation of what an evaluation would have given.
  throwIfGivenUp();
  await sequence.adaptStateToTokens(asTokens(promptIds.slice(0, -1)), false);
  const cachedTokens = sequence.nextTokenIndex;
  while (promptIds.length - sequence.nextTokenIndex > STEP_TOKENS) {
    throwIfGivenUp();
    const from = sequence.nextTokenIndex;
    await sequence.evaluateWithoutGeneratingNewTokens(asTokens(promptIds.slice(from, from + STEP_TOKENS)));
  }
  throwIfGivenUp();
  return cachedTokens;
}

function samplingOf(request: GenerationRequest) {
  const { temperature, topP, topK, minP, seed } = request; // all given: the library's own defaults are top-k 40, top-p 0.95
  return { temperature, topP, topK, minP, seed, yieldEogToken: true };
}

function textOf(model: LoadedModel, outputIds: readonly number[], finish: Finish): string {
  const text = model.decoder.textOf(finish.kind === 'end' ? outputIds.slice(0, -1) : outputIds);
  if (finish.kind !== 'string') return text;
  const at = text.indexOf(finish.text);
  return at < 0 ? text : text.slice(0, at);
}

/** The library brands its ids; they are plain numbers. */
function asTokens(ids: readonly number[]): Token[] {
  return ids as unknown as Token[];
}
