/**
 * Family: would a trainer that takes text arrive at the same ids? The conversation is rendered with the model's own chat
 * template, encoded anew, and compared with the ids that the engine used, token row by token row. Pure but for the
 * tokenizer it is given.
 *
 * The engine's ids are the truth, so a difference is no mistake of the record: token rows are right, and rows of text are
 * not quite. Where the first difference lies says what it is: among the prompt's ids, the template or the tokenizer is not
 * the one that served (or drops earlier reasoning); among the answer's, the model chose tokens that its text would not be
 * split into. What the template writes after the last answer is not compared: an answer that was cut has no end.
 * Not compared: records without ids, and conversations that the template refuses (a finding of its own).
 */
import type { Message, ToolCall } from '../../base/conversation.ts';
import { promptIdsOf, type RecordTurn, type TrainingRecord } from '../../shard/record.ts';
import { findNextTurn } from '../../shard/walk-conversation.ts';
import { ChatTemplateError } from '../../tokens/chat-template.ts';
import type { Decoder } from '../../tokens/decoder.ts';
import { continuesThroughout } from '../token-rows.ts';
import type { FindingCode } from './codes.ts';

export interface Drift {
  /** Token rows that were compared. */
  readonly rows: number;
  readonly differing: number;
  readonly codes: readonly FindingCode[];
}

export type Renderer = Pick<Decoder, 'encode' | 'renderChat'>;

const NOTHING: Drift = { rows: 0, differing: 0, codes: [] };

export function findDrift(record: TrainingRecord, tokenizer: Renderer, kwargs: Readonly<Record<string, unknown>> = {}): Drift {
  const { renderChat } = tokenizer;
  if (!record.exact || renderChat === undefined) return NOTHING;
  const rows = tokenRowsOf(record.turns);
  const codes = new Set<FindingCode>();
  let compared = 0;
  let differing = 0;
  for (const { lastTurn, segments } of rows) {
    const rendered = renderUpTo(record, lastTurn, (messages) => renderChat(messages, { ...toolsOf(record), ...kwargs }));
    if (rendered === undefined) {
      codes.add('template-refuses');
      continue;
    }
    compared += 1;
    const code = firstDifference(segments, tokenizer.encode(rendered));
    if (code === undefined) continue;
    differing += 1;
    codes.add(code);
  }
  return { rows: compared, differing, codes: [...codes] };
}

type Segment = Pick<RecordTurn, 'promptIds' | 'outputIds'>;

/** As `renderTokenRows` cuts them: the whole conversation where it is one sequence, else each turn with its whole prompt. */
function tokenRowsOf(turns: readonly RecordTurn[]): { readonly lastTurn: number; readonly segments: readonly Segment[] }[] {
  if (continuesThroughout(turns)) return [{ lastTurn: turns.length - 1, segments: turns }];
  const prompts = promptIdsOf(turns);
  return turns.map(({ outputIds }, lastTurn) => ({ lastTurn, segments: [{ promptIds: prompts[lastTurn] ?? [], outputIds }] }));
}

/** The conversation up to and with the answer of a turn, or undefined where the template refuses it. */
function renderUpTo(
  record: TrainingRecord,
  turn: number,
  render: (messages: readonly Readonly<Record<string, unknown>>[]) => string,
): string | undefined {
  const answer = record.turns[turn];
  const asked = findNextTurn(record.messages, record.turns.slice(0, turn));
  if (answer === undefined || asked.kind !== 'ask') return undefined;
  const { text, reasoning, toolCalls } = answer;
  const messages = [
    ...asked.messages.map(asTemplateMessage),
    {
      ...asTemplateMessage({ role: 'assistant', content: text, toolCalls }),
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    },
  ];
  try {
    return render(messages);
  } catch (thrown) {
    if (thrown instanceof ChatTemplateError) return undefined;
    throw thrown;
  }
}

function toolsOf({ tools }: TrainingRecord): Readonly<Record<string, unknown>> {
  return tools.length === 0 ? {} : { tools: tools.map(parsed) };
}

/** As vLLM and transformers hand it to the template: arguments of calls as objects. */
function asTemplateMessage({ role, content, toolCalls = [], name = '' }: Message): Readonly<Record<string, unknown>> {
  const calls = toolCalls.map((call: ToolCall) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: parsed(call.arguments) },
  }));
  return { role, content, ...(calls.length > 0 ? { tool_calls: calls } : {}), ...(name === '' ? {} : { name }) };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return json; // a model may write what is no JSON; the template gets it as it is
  }
}

function firstDifference(segments: readonly Segment[], anew: readonly number[]): FindingCode | undefined {
  let at = 0;
  for (const { promptIds, outputIds } of segments) {
    for (const id of promptIds) if (anew[at++] !== id) return 'prompt-drift';
    for (const id of outputIds) if (anew[at++] !== id) return 'answer-drift';
  }
  return undefined;
}
