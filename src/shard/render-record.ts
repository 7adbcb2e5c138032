/**
 * A record → its line. Keys are written in one order for all records, whatever order the caller's objects have, because
 * the line is hashed and because trainers' loaders infer columns from the first rows. Pure.
 */
import type { Message, ToolCall } from '../base/conversation.ts';
import type { Sampling } from '../base/sampling.ts';
import type { Provenance, RecordTurn, TrainingRecord } from './record.ts';

/** One JSON line with its newline. */
export function renderRecord(record: TrainingRecord): Buffer {
  const { v, id, partition, messages, tools, turns, exact, inexactBecause, flags, sampling, provenance } = record;
  const ordered: TrainingRecord = {
    v,
    id,
    partition,
    messages: messages.map(orderMessage),
    tools,
    turns: turns.map(orderTurn),
    exact,
    inexactBecause,
    flags,
    sampling: orderSampling(sampling),
    provenance: orderProvenance(provenance),
  };
  return Buffer.from(`${JSON.stringify(ordered)}\n`);
}

function orderTurn(turn: RecordTurn): RecordTurn {
  const { continues, promptIds, outputIds, endsWithStopId, text, reasoning, toolCalls, finish, usage, seed, server } = turn;
  return {
    continues,
    promptIds,
    outputIds,
    endsWithStopId,
    text,
    reasoning,
    toolCalls: toolCalls.map(orderToolCall),
    finish,
    usage: { prompt: usage.prompt, completion: usage.completion, cached: usage.cached },
    seed,
    server,
  };
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
