/** The schemas of Parquet exports, and a token row in them: metadata as columns of its own. Pure. */
import type { Column } from './parquet-parts.ts';
import type { TokenRow } from './token-rows.ts';

type Elements = Column['elements'];

const text = (name: string): Elements => [{ name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' }];
const int32 = (name: string): Elements => [{ name, type: 'INT32', repetition_type: 'REQUIRED' }];
const flag = (name: string): Elements => [{ name, type: 'BOOLEAN', repetition_type: 'REQUIRED' }];
const struct = (name: string, ...fields: readonly Elements[]): Elements => [
  { name, repetition_type: 'REQUIRED', num_children: fields.length },
  ...fields.flat(),
];
/** Three levels, as the format asks: the list, its repetition, its element. */
const list = (name: string, element: Elements): Elements => [
  { name, repetition_type: 'REQUIRED', converted_type: 'LIST', num_children: 1 },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  ...element,
];
const column = (elements: Elements): Column => ({ name: elements[0]?.name ?? '', elements });

export const TOKEN_COLUMNS: readonly Column[] = [
  ...['id', 'primary_id', 'partition'].map(text),
  list('input_ids', int32('element')),
  list('loss_mask', int32('element')),
  ...['text', 'finish_reason', 'sampling_params', 'model', 'engine'].map(text),
  ...['first_turn', 'turns', 'prompt_tokens', 'completion_tokens'].map(int32),
  ...['is_truncated', 'is_tool_call'].map(flag),
].map(column);

export const MESSAGE_COLUMNS: readonly Column[] = [
  text('id'),
  text('partition'),
  list(
    'messages',
    struct(
      'element',
      ...['role', 'content', 'reasoning_content'].map(text),
      list('tool_calls', struct('element', text('id'), text('type'), struct('function', text('name'), text('arguments')))),
      text('tool_call_id'),
    ),
  ),
  text('tools'),
].map(column);

export function flattenTokenRow({ metadata, ...row }: TokenRow): Readonly<Record<string, unknown>> {
  const { usage, record: _record, ...rest } = metadata; // primary_id is the record
  return { ...row, ...rest, prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens };
}
