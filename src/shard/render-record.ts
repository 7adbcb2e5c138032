/**
 * A record → its line, byte for byte what `JSON.stringify` makes of it. Keys are written in one order for all records, whatever order the caller's objects have, because
 * the line is hashed and because trainers' loaders infer columns from the first rows. Pure.
 */
import type { Message, ToolCall } from '../base/conversation.ts';
import type { Sampling } from '../base/sampling.ts';
import type { LineBuffer } from './line-buffer.ts';
import type { Provenance, RecordTurn, TrainingRecord } from './record.ts';

/** One JSON line with its newline, in the memory of `line`: it stays until that is reset. */
export function renderRecord(record: TrainingRecord, line: LineBuffer): Buffer {
  const { v, id, partition, messages, tools, turns, exact, inexactBecause, flags, sampling, provenance } = record;
  const head = { v, id, partition, messages: messages.map(orderMessage), tools };
  line.text(`${JSON.stringify(head).slice(0, -1)},"turns":[`);
  for (const [nth, turn] of turns.entries()) {
    if (nth > 0) line.text(',');
    renderTurn(turn, line);
  }
  const tail = { exact, inexactBecause, flags, sampling: orderSampling(sampling), provenance: orderProvenance(provenance) };
  line.text(`],${JSON.stringify(tail).slice(1)}\n`);
  return line.end();
}

/** Ids are most of a record, and as bytes they cost half of what they cost as text. */
function renderTurn(turn: RecordTurn, line: LineBuffer): void {
  const { continues, promptIds, outputIds, endsWithStopId, text, reasoning, toolCalls, finish, usage, seed, server } = turn;
  line.text(`{"continues":${continues},"promptIds":`);
  line.ids(promptIds);
  line.text(',"outputIds":');
  line.ids(outputIds);
  const rest = {
    endsWithStopId,
    text,
    reasoning,
    toolCalls: toolCalls.map(orderToolCall),
    finish,
    usage: { prompt: usage.prompt, completion: usage.completion, cached: usage.cached },
    seed,
    server,
  };
  line.text(`,${JSON.stringify(rest).slice(1)}`);
}

/** All keys in every message: a column that is absent from the first rows has no type. */
function orderMessage({ role, content, toolCalls = [], toolCallId = '', name = '' }: Message): Required<Message> {
  return { role, content, toolCalls: toolCalls.map(orderToolCall), toolCallId, name };
}

function orderToolCall({ id, name, arguments: text }: ToolCall): ToolCall {
  return { id, name, arguments: text };
}

function orderSampling({ temperature, topP, topK, maxTokens, seed, stop }: Sampling): Sampling {
  return { temperature, topP, topK, maxTokens, seed, stop };
}

function orderProvenance(provenance: Provenance): Provenance {
  const { model, revision, engine, engineVersion, weights, kvCacheDtype, templateHash, launch, aerie } = provenance;
  return { model, revision, engine, engineVersion, weights, kvCacheDtype, templateHash, launch, aerie };
}
