/**
 * The reader in scripts/trainers/offline_reader.py is a second opinion on exports: here it is given one mistake at a time,
 * and must name it. It needs Python 3.9 and nothing else.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../scripts/verify_trainers.py', import.meta.url));
const PYTHON = ['python3', 'python'].find(
  (name) => spawnSync(name, ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0,
);
const canRun = PYTHON !== undefined || process.env['AERIE_REQUIRE_ALL'] === '1';

const TOKENIZER = { added_tokens: [{ id: 3, content: '<end>' }], model: { vocab: { a: 0, b: 1, c: 2 } } };
const TOKENS = {
  id: 'p_gen0',
  primary_id: 'p',
  input_ids: [0, 1, 2, 3],
  loss_mask: [0, 0, 1, 1],
  text: 'c',
  metadata: {
    first_turn: 0,
    turns: 1,
    finish_reason: 'stop',
    is_truncated: false,
    usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 },
  },
};
const MESSAGES = [
  { role: 'user', content: 'ab' },
  { role: 'assistant', content: 'c' },
];
const CONVERSATION = { id: 'p', status: 'success', conversations: MESSAGES };

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** The reader's verdict on a SpecForge export of these files. */
function verdictOn(files: Readonly<Record<string, string>>): { readonly verdict: string; readonly detail: string } {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-formats-'));
  folders.push(folder);
  const put = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  put('tokenizer/tokenizer.json', JSON.stringify(TOKENIZER));
  put('tokenizer/tokenizer_config.json', JSON.stringify({ eos_token: '<end>' }));
  for (const [name, text] of Object.entries(files)) put(`export/${name}`, text);
  const exports = [{ target: 'specforge', folder: join(folder, 'export') }];
  const job = { exports, tokenizer: join(folder, 'tokenizer'), scratch: join(folder, 'scratch') };
  const ran = spawnSync(PYTHON ?? 'python3', [SCRIPT, 'offline'], {
    input: JSON.stringify(job),
    encoding: 'utf8',
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  });
  expect(ran.status, ran.stderr).toBe(0);
  return JSON.parse(ran.stdout);
}

const lines = (...rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const tokens = (change: object = {}) => ({ 'tokens/A.tokens-00000.jsonl': lines({ ...TOKENS, ...change }) });
const conversation = (change: object = {}) => ({
  'conversations/A.conversations-00000.jsonl': lines({ ...CONVERSATION, ...change }),
});
const metadata = (change: object) => tokens({ metadata: { ...TOKENS.metadata, ...change } });
const answer = (content: string) => conversation({ conversations: [MESSAGES[0], { role: 'assistant', content }] });

describe.skipIf(!canRun)('the formats reader', () => {
  it('takes an export without mistakes', () => {
    expect(verdictOn({ ...tokens(), ...conversation() })).toMatchObject({ verdict: 'ok', rows: 2 });
  });

  it.each([
    ['a torn line', { 'tokens/A.tokens-00000.jsonl': `${lines(TOKENS)}{"id": "q` }, 'the last line has no end'],
    ['a bare line separator', answer('c\u2028'), 'line ends'],
    ['two shapes in one folder', { ...tokens(), 'tokens/A.conversations-00000.jsonl': lines(CONVERSATION) }, 'two row shapes'],
    ['an id that comes twice', { 'tokens/A.tokens-00000.jsonl': lines(TOKENS, TOKENS) }, 'was seen before'],
    ['an id outside the vocabulary', tokens({ input_ids: [0, 1, 2, 4] }), 'outside the vocabulary'],
    ['a negative id', tokens({ input_ids: [-1, 1, 2, 3] }), 'outside the vocabulary'],
    ['a mask of another length', tokens({ loss_mask: [0, 0, 1] }), '4 ids and 3 mask values'],
    ['a mask that teaches nothing', tokens({ loss_mask: [0, 0, 0, 0] }), 'teaches nothing'],
    ['a mask with a gap', tokens({ loss_mask: [1, 0, 1, 1] }), '2 blocks of ones'],
    ['ids that read otherwise', tokens({ input_ids: [0, 1, 1, 3] }), 'the taught ids read'],
    ['a stop without its id', tokens({ input_ids: [0, 1, 3, 2] }), 'finish_reason is stop'],
    ['a cut answer with the stop id', metadata({ finish_reason: 'length' }), 'finish_reason is length'],
    ['usage that counts otherwise', metadata({ usage: { completion_tokens: 1, total_tokens: 4 } }), 'usage does not count'],
    [
      'keys that vary',
      { 'tokens/A.tokens-00000.jsonl': lines(TOKENS, { ...TOKENS, id: 'q', extra: 1 }) },
      'keys or types differ',
    ],
    ['no answer at the end', conversation({ conversations: MESSAGES.slice(0, 1) }), 'do not alternate'],
    ['an empty answer', answer(' '), 'is empty'],
    ['a think marker', answer('so </think> c'), 'think marker'],
    ['a NUL', answer('c\u0000'), 'a NUL'],
    ['a column more', conversation({ tools: [] }), 'chat template'],
    ['another status', conversation({ status: 'error' }), 'status is not success'],
    ['two stories', { ...tokens(), ...answer('b') }, 'different answers'],
  ])('names %s', (_name, files, words) => {
    const { verdict, detail } = verdictOn(files);
    expect(verdict).toBe('failed');
    expect(detail).toContain(words);
  });
});
