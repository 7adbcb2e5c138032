/** What SGLang's scheduler prints while it serves, in the format of each version from 0.4.6 to 0.5.18 (field formats: docs/lookalike.md). Pure. */
import { isAtLeast } from '../../../engine/version.ts';
import type { PrefillBatch } from '../../../twin/twin-event.ts';
import type { DecodeReading, ScheduledEvent } from './scheduled-event.ts';

export interface LineContext {
  readonly version: string;
  readonly poolTokens: number;
  /** The largest batch with a captured graph; 0 = every step is eager. */
  readonly largestGraph: number;
}

type Version = readonly [number, number, number];
const isFrom = (version: string, least: Version) => isAtLeast(version, least) ?? true;
const fixed = (value: number, digits = 2) => value.toFixed(digits);

export interface PrefillLine extends PrefillBatch {
  readonly pendingTokens: number;
  /** Prompt tokens a second since the prefill before it. */
  readonly inputPerSecond: number;
}

export function prefillLine(batch: PrefillLine, { version, poolTokens }: LineContext): string {
  const fields = [
    `#new-seq: ${batch.newSequences}`,
    `#new-token: ${batch.newTokens}`,
    `#cached-token: ${batch.cachedTokens}`,
    `token usage: ${fixed(batch.usedTokens / poolTokens)}`,
    `#running-req: ${batch.running}`,
    `#queue-req: ${batch.queued}`,
  ];
  const graph = 'cuda graph: False'; // prompts are computed without a decode graph
  const input = `input throughput (token/s): ${fixed(batch.inputPerSecond)}`;
  if (isFrom(version, [0, 5, 11])) fields.push(`#pending-token: ${batch.pendingTokens}`, graph, input);
  else if (isFrom(version, [0, 5, 9])) fields.push(input, graph);
  else fields.push('');
  return `${openingOf('Prefill', version)}${fields.join(', ')}`;
}

export function decodeLine(reading: DecodeReading, { version, poolTokens, largestGraph }: LineContext): string {
  const fields = [
    `#running-req: ${reading.running}`,
    `#token: ${reading.usedTokens}`,
    `token usage: ${fixed(reading.usedTokens / poolTokens)}`,
    `cuda graph: ${reading.running <= largestGraph ? 'True' : 'False'}`,
    `gen throughput (token/s): ${fixed(throughputOf(reading))}`,
    `#queue-req: ${reading.queued}`,
  ];
  if (!isFrom(version, [0, 5, 9])) fields.push('');
  return `${openingOf('Decode', version)}${fields.join(', ')}`;
}

export function throughputOf({ generatedTokens, seconds }: DecodeReading): number {
  return seconds > 0 ? generatedTokens / seconds : 0;
}

export function retractionLine(
  { requests, gainedTokens, ratioBefore, ratioAfter }: Extract<ScheduledEvent, { kind: 'retracted' }>,
  { version }: LineContext,
): string {
  const ratio = `#new_token_ratio: ${fixed(ratioBefore, 4)} -> ${fixed(ratioAfter, 4)}`;
  if (!isFrom(version, [0, 4, 7])) return `Decode out of memory happened. #retracted_reqs: ${requests}, ${ratio}`;
  const gained = isFrom(version, [0, 5, 7]) ? `#new_tokens_gained: ${gainedTokens}, ` : '';
  return `KV cache pool is full. Retract requests. #retracted_reqs: ${requests}, ${gained}${ratio}`;
}

/** One request alone that the pool cannot hold: the end of the server up to 0.5.9, of the request from 0.5.10 on. */
export function outOfPoolLine(id: string, { version }: LineContext): string {
  return isFrom(version, [0, 5, 10])
    ? `retract_decode: aborted last request ${id} due to OOM`
    : 'Out of memory even after retracting all other requests in the decode batch.';
}

/** `clock`: HH:MM:SS of the moment asked and of the last result. */
export function healthFailedLine(waitedSeconds: number, asked: string, last: string): string {
  return `Health check failed. Server couldn't get a response from detokenizer for last ${waitedSeconds} seconds. tic start time: ${asked}. last_heartbeat time: ${last}`;
}

function openingOf(kind: 'Prefill' | 'Decode', version: string): string {
  if (isFrom(version, [0, 5, 5])) return `${kind} batch, `;
  return isFrom(version, [0, 5, 4]) ? `${kind} batch [0], ` : `${kind} batch. `;
}
