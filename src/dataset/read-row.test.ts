import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { excerptBytes, excerptText } from './excerpt-text.ts';
import { readRow } from './read-row.ts';
import type { RejectionReason } from './rejection.ts';
import { REJECTION_REASONS, REJECTION_SENTENCE } from './rejection.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (row: unknown) => readRow(bytesOf(typeof row === 'string' ? row : JSON.stringify(row)));
const message = (role: string, content: unknown) => ({ role, content });
const rows = (...messages: unknown[]) => ({ messages });

/** [role, content] of the prompt, or the reason. */
function seen(row: unknown): unknown {
  const result = read(row);
  return result.kind === 'prompt' ? result.prompt.messages.map(({ role, content }) => [role, content]) : result.reason;
}

const twoQuestions = [
  ['user', 'Name a river.'],
  ['user', 'And a lake.'],
];

test('every shape gives the same messages', () => {
  expect(seen({ turns: ['Name a river.', 'And a lake.'], question_id: 7, category: 'geography' })).toEqual(twoQuestions);
  const answered = [message('user', 'Name a river.'), message('assistant', 'The Po.'), message('user', 'And a lake.')];
  expect(seen({ messages: answered })).toEqual(twoQuestions);
  expect(seen({ conversations: answered })).toEqual(twoQuestions);
  for (const [user, assistant] of [
    ['human', 'gpt'],
    ['user', 'assistant'],
    ['human', 'model'],
  ]) {
    const conversations = [
      { from: user, value: 'Name a river.' },
      { from: assistant, value: 'The Po.' },
      { from: user, value: 'And a lake.' },
      { from: assistant, value: 'Garda.' },
    ];
    expect(seen({ id: 'x', conversations })).toEqual(twoQuestions);
  }
  expect(seen({ prompt: 'Name a river.' })).toEqual([['user', 'Name a river.']]);
});

test('a leading system message is kept, from the list or from its own column', () => {
  const expected = [
    ['system', 'Be brief.'],
    ['user', 'Name a river.'],
  ];
  expect(seen(rows(message('system', 'Be brief.'), message('user', 'Name a river.')))).toEqual(expected);
  expect(seen({ prompt: 'Name a river.', system: 'Be brief.' })).toEqual(expected);
  expect(seen({ system: 'Be brief.', conversations: [{ from: 'human', value: 'Name a river.' }] })).toEqual(expected);
  expect(seen({ prompt: 'Name a river.', system: '' })).toEqual([['user', 'Name a river.']]);
  expect(seen({ prompt: 'Name a river.', system: null })).toEqual([['user', 'Name a river.']]);
});

test('the list wins over a prompt beside it, unused columns do not count, and content is kept to the character', () => {
  expect(seen({ prompt: 'first', messages: [message('user', 'first')], tools: [], tool_calls: null })).toEqual([
    ['user', 'first'],
  ]);
  expect(seen({ messages: null, turns: 2, tools: '[]', prompt: ' a\r\n\tb ' })).toEqual([['user', ' a\r\n\tb ']]);
  expect(seen({ prompt: '😀 \u2028 \ufeff' })).toEqual([['user', '😀 \u2028 \ufeff']]);
});

test('what the source answered is not looked at', () => {
  expect(seen(rows(message('user', 'a'), message('assistant', null), message('user', 'b'), message('assistant', '')))).toEqual([
    ['user', 'a'],
    ['user', 'b'],
  ]);
});

const examples: Readonly<Record<Exclude<RejectionReason, 'too-long-line'>, readonly unknown[]>> = {
  'bad-utf8': [],
  'too-many-values': [`{"prompt":"a","ids":[${'0,'.repeat(2_000_001)}0]}`, '['.repeat(2_000_001)],
  'not-json': [
    '{"prompt":"a"',
    'hello',
    '{"prompt":"a"} {"prompt":"b"}',
    '{"prompt":NaN}',
    "{'prompt':'a'}",
    '\ufeff{"prompt":"a"}',
  ],
  'not-an-object': ['[]', '"text"', '1e999', 'null', 'true'],
  'unknown-shape': [
    {},
    { message: [] },
    { prompts: 'a' },
    { messages: 'a' },
    { prompt: [message('user', 'a')] },
    { messages: ['a'] },
    { messages: [null] },
    '{"__proto__":{"prompt":"a"}}',
    '{"constructor":{"prompt":"a"}}',
  ],
  'ragged-row': [],
  'bad-tools': [
    { prompt: 'a', tools: ['f'] },
    { prompt: 'a', tools: 'search' },
    { prompt: 'a', tools: '[{"description":"no name"}]' },
    { prompt: 'a', functions: [{ name: 3 }] },
    { prompt: 'a', tools: 7 },
  ],
  'bad-tool-call': [],
  'no-given-answer': [],
  'unknown-role': [
    rows(message('User', 'a')),
    rows(message('developer', 'a')),
    rows({ content: 'a' }),
    rows({ role: 3, content: 'a' }),
    rows(message('__proto__', 'a')),
    rows(message('constructor', 'a')),
  ],
  'wrong-role-order': [
    rows(message('assistant', 'a'), message('user', 'b')),
    rows(message('user', 'a'), message('user', 'b')),
    rows(message('user', 'a'), message('assistant', 'b'), message('assistant', 'c')),
    rows(message('user', 'a'), message('system', 'b')),
    rows(message('system', 'a'), message('system', 'b'), message('user', 'c')),
    rows(message('system', 'a'), message('assistant', 'b')),
    rows(message('user', 'a'), message('tool', '4')),
    { conversations: [{ from: 'observation', value: 'a' }] },
    rows(message('user', 'a'), message('assistant', 'b'), message('tool', '4'), message('user', 'c')),
  ],
  'no-user-turn': [rows(), { turns: [] }, rows(message('system', 'a'))],
  'content-not-text': [
    rows(
      message('user', [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: 'x' } },
      ]),
    ),
    rows(message('user', [7])),
    { instruction: 'a', input: 3 },
    { turns: ['a', 3] },
    { turns: [message('user', 'a')] },
    { prompt: 'a', system: { text: 'b' } },
  ],
  'empty-content': [
    rows(message('user', '')),
    rows(message('user', ' \n\t\u00a0')),
    rows({ role: 'user' }),
    rows(message('user', null)),
    { prompt: '' },
    { turns: ['a', ' '] },
    rows(message('user', [])),
  ],
  'lone-surrogate': ['{"prompt":"a\\ud800"}', '{"prompt":"\\udc00\\ud800"}', '{"turns":["a","\\udfff b"]}'],
  'nul-character': ['{"prompt":"a\\u0000b"}'],
};

test.each(Object.entries(examples))('%s', (reason, written) => {
  for (const row of written) expect([seen(row), JSON.stringify(row).slice(0, 80)]).toEqual([reason, expect.anything()]);
});

test('bad UTF-8 is refused, never replaced', () => {
  const start = [...bytesOf('{"prompt":"')];
  const end = [...bytesOf('"}')];
  // A stray byte, a cut character, an overlong slash, a surrogate in UTF-8, a code point above U+10FFFF.
  for (const bad of [[0xff], [0xe2, 0x82], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
    expect(readRow(Uint8Array.from([...start, ...bad, ...end]))).toMatchObject({ kind: 'rejected', reason: 'bad-utf8' });
  }
  expect(readRow(Buffer.from('{"prompt":"a"}', 'utf16le'))).toMatchObject({ kind: 'rejected' });
  expect(readRow(Buffer.from('\ufeff{"prompt":"a"}', 'utf16le'))).toMatchObject({
    reason: 'bad-utf8',
    detail: expect.stringContaining('UTF-16'),
  });
});

test('the detail names the keys, the nearest known key and the place', () => {
  expect(read({ id: 1, conversation: [] })).toMatchObject({
    detail: 'its keys are id, conversation; did you mean conversations instead of conversation?',
  });
  expect(read({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9 })).toMatchObject({
    detail: expect.stringContaining('and 1 more'),
  });
  expect(read(rows(message('user', 'a'), message('User', 'b')))).toMatchObject({
    detail: 'messages[1] has the role "User"; did you mean user?',
  });
  expect(read('{"prompt":"ab\\ud800"}')).toMatchObject({ detail: 'prompt, at character 3' });
});

test('deep nesting, huge numbers and duplicate keys are no surprise', () => {
  const depth = 400_000;
  expect(seen(`{"prompt":"a","x":${'['.repeat(depth)}${']'.repeat(depth)}}`)).toEqual([['user', 'a']]);
  expect(seen(`{"prompt":"a","x":1e999,"y":${'9'.repeat(100_000)}}`)).toEqual([['user', 'a']]);
  const [open, close] = ['{"a":'.repeat(depth), '}'.repeat(depth)];
  const tool = `{"name":"f","parameters":${open}1${close}}`;
  for (const tools of [`[${tool}]`, JSON.stringify(`[${tool}]`), `[${JSON.stringify(tool)}]`])
    expect(read(`{"prompt":"a","tools":${tools}}`)).toMatchObject({
      reason: 'bad-tools',
      detail: 'tools[0] is nested more than 100 levels deep',
    });
  expect(seen('{"prompt":"a","prompt":"b"}')).toEqual([['user', 'b']]);
  expect(seen('{"__proto__":{"system":"x","tools":[1]},"prompt":"a"}')).toEqual([['user', 'a']]);
  expect(seen(rows(JSON.parse('{"__proto__":{"tool_calls":[1]},"role":"user","content":"a"}')))).toEqual([['user', 'a']]);
});

test('no bytes and no JSON value make it throw', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => readRow(bytes).kind.length > 0));
  const key = fc.constantFrom(
    'messages',
    'conversations',
    'turns',
    'prompt',
    'system',
    'tools',
    'role',
    'from',
    'content',
    'value',
    'x',
  );
  const leaf = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('user', 'gpt', 'system'), fc.integer(), fc.constant(null));
  const { node } = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(key, tie('node'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(fc.dictionary(key, node), (row) => read(JSON.stringify(row)).kind.length > 0),
    { numRuns: runs(1000) },
  );
});

test('every reason has a sentence', () => {
  for (const reason of REJECTION_REASONS) expect(REJECTION_SENTENCE[reason]).toMatch(/^[A-Z].*\.$/);
});

test('excerpts are short and safe to print', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.integer({ min: 1, max: 200 }), (text, most) => {
      const excerpt = excerptText(text, most);
      expect(excerpt.length).toBeLessThanOrEqual(most);
      expect(excerpt).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
      if (text.length > most) expect(excerpt.endsWith('…')).toBe(true);
    }),
  );
  expect(excerptText('a\u001b[31m\u202eb', 200)).toBe('a [31m b');
  expect(excerptBytes(bytesOf('é'.repeat(500)), 200)).toBe(`${'é'.repeat(199)}…`);
});
