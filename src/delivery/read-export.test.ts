/** The independent reader is only worth something if it finds what is wrong: one wrong file for each fault. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readExport } from '../../test/support/read-export.mjs';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'aerie-read-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 };
const token = { id: 'a', primary_id: 'a', input_ids: [1, 2, 3], loss_mask: [0, 0, 1], text: 't', metadata: { turns: 1, usage } };
const user = { role: 'user', content: 'q' };
const answer = { role: 'assistant', content: 'r' };
const talk = { id: 'a', status: 'success', conversations: [user, answer] };
const human = { from: 'human', value: 'q' };
const gpt = { from: 'gpt', value: 'r' };
const call = { id: '1', type: 'function', function: { name: 'f', arguments: {} } };
const result = { role: 'tool', content: '', tool_call_id: '1' };
const asked = { conversation_id: 'a', messages: [user, answer] };
const calling = (made: object) => ({
  id: 'a',
  messages: [user, { ...answer, content: '', tool_calls: [made] }, result, answer],
  tools: [{ type: 'function' }],
});
const lines = (...rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

const TOKENS = 'tokens/B1.tokens-00000.jsonl';
const MESSAGES = 'messages/B1.messages-00000.jsonl';
const TOOLS = 'messages/B1.tool-messages-00000.jsonl';
const TALKS = 'conversations/B1.conversations-00000.jsonl';
const withReasoning = { ...talk, id: 'b', conversations: [user, { ...answer, reasoning_content: 'x' }] };

const WRONG: readonly { readonly code: string; readonly file: string; readonly body: string }[] = [
  { code: 'stray-file', file: 'tokens/manifest.json', body: '{}\n' },
  { code: 'stray-file', file: 'tokens/B1.errors.jsonl', body: '{}\n' },
  { code: 'empty-file', file: TOKENS, body: '' },
  { code: 'no-last-newline', file: TOKENS, body: JSON.stringify(token) },
  { code: 'not-json', file: TOKENS, body: '{"id":\n' },
  { code: 'not-an-object', file: TOKENS, body: '[]\n' },
  { code: 'duplicate-id', file: TOKENS, body: lines(token, token) },
  { code: 'shape-varies', file: TOKENS, body: lines(token, { ...token, id: 'b', metadata: { turns: 1, usage, more: 1 } }) },
  { code: 'wrong-keys', file: TOKENS, body: lines({ ...token, extra: 1 }) },
  { code: 'lists-missing', file: TOKENS, body: lines({ ...token, loss_mask: null }) },
  { code: 'lengths-differ', file: TOKENS, body: lines({ ...token, loss_mask: [0, 1] }) },
  { code: 'id-out-of-range', file: TOKENS, body: lines({ ...token, input_ids: [1, 2, 100] }) },
  { code: 'id-out-of-range', file: TOKENS, body: lines({ ...token, input_ids: [1, -2, 3] }) },
  { code: 'mask-not-binary', file: TOKENS, body: lines({ ...token, loss_mask: [0, 2, 1] }) },
  { code: 'mask-empty', file: TOKENS, body: lines({ ...token, loss_mask: [0, 0, 0] }) },
  { code: 'mask-not-one-block', file: TOKENS, body: lines({ ...token, loss_mask: [1, 0, 0] }) },
  { code: 'usage-differs', file: TOKENS, body: lines({ ...token, loss_mask: [0, 1, 1] }) },
  { code: 'status', file: TALKS, body: lines({ ...talk, status: 'error' }) },
  { code: 'empty-content', file: TALKS, body: lines({ ...talk, conversations: [user, { ...answer, content: ' ' }] }) },
  { code: 'order', file: TALKS, body: lines({ ...talk, conversations: [answer] }) },
  { code: 'last-not-assistant', file: TALKS, body: lines({ ...talk, conversations: [user] }) },
  { code: 'think-marker', file: TALKS, body: lines({ ...talk, conversations: [user, { ...answer, content: '<think>' }] }) },
  {
    code: 'text-not-well-formed',
    file: TALKS,
    body: lines({ ...talk, conversations: [user, { ...answer, content: '\ud800' }] }),
  },
  { code: 'wrong-keys', file: TALKS, body: lines({ ...talk, tools: [] }) },
  { code: 'order', file: TALKS, body: lines({ ...talk, conversations: [user, user, answer] }) },
  { code: 'order', file: TALKS, body: lines({ id: 'a', conversations: [gpt, human] }) },
  { code: 'last-not-assistant', file: TALKS, body: lines({ id: 'a', conversations: [human, gpt, human] }) },
  { code: 'empty-content', file: TALKS, body: lines({ id: 'a', conversations: [human, { ...gpt, value: '' }] }) },
  { code: 'wrong-message-keys', file: TALKS, body: lines({ id: 'a', conversations: [human, { ...gpt, role: 'x' }] }) },
  { code: 'python-line-end', file: MESSAGES, body: lines({ id: 'a', messages: [{ ...user, content: 'a\u2028b' }, answer] }) },
  { code: 'id-not-text', file: MESSAGES, body: lines({ id: 7, messages: [user, answer] }) },
  { code: 'duplicate-id', file: MESSAGES, body: lines(asked, asked) },
  { code: 'no-messages', file: MESSAGES, body: lines({ id: 'a', messages: [] }) },
  {
    code: 'order',
    file: MESSAGES,
    body: lines({ id: 'a', messages: [user, { ...answer, tool_calls: [call] }, result, answer] }),
  },
  {
    code: 'order',
    file: TOOLS,
    body: lines({ id: 'a', messages: [user, { ...answer, tool_calls: [call] }, user, answer], tools: [] }),
  },
  { code: 'wrong-keys', file: TOOLS, body: lines(asked) },
  { code: 'tools-not-a-list', file: TOOLS, body: lines({ ...asked, tools: '[]' }) },
  { code: 'call-not-well-formed', file: TOOLS, body: lines(calling({ ...call, function: { name: 'f', arguments: '{}' } })) },
  { code: 'reasoning-varies', file: TALKS, body: lines(talk, withReasoning) },
];

it.each(WRONG)('finds $code in $file', async ({ code, file, body }) => {
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), body);
  const { findings } = readExport(root, { vocabularySize: 100 });
  expect(findings.map((finding) => finding.code)).toContain(code);
});

it('finds a mask that the cut at the maximum length leaves empty, and two shapes in one folder', async () => {
  await writeFile(join(root, 'B1.tokens-00000.jsonl'), lines(token));
  await writeFile(join(root, 'B1.conversations-00000.jsonl'), lines(talk));
  expect(readExport(root).findings).toEqual([{ file: '.', line: 0, code: 'mixed-folder' }]);
  expect(readExport(root, { maxLength: 2 }).findings.map((finding) => finding.code)).toContain('mask-empty-after-cut');
});

it('finds nothing in right rows of every shape', async () => {
  const right = {
    [TALKS]: lines(talk),
    [MESSAGES]: lines(asked),
    [TOOLS]: lines(calling(call)),
    'eagle/B1.conversations-00000.jsonl': '',
  };
  right['eagle/B1.conversations-00000.jsonl'] = lines({ id: 'b', conversations: [human, gpt] });
  for (const [file, body] of Object.entries(right)) {
    await mkdir(dirname(join(root, 'one', file)), { recursive: true });
    await writeFile(join(root, 'one', file), body);
    expect(readExport(join(root, 'one')).findings, file).toEqual([]);
    await rm(join(root, 'one'), { recursive: true });
  }
});
