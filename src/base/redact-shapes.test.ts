/** Keys that nobody has named are hidden by their looks and their names; figures of engines stay. */
import { expect, test } from 'vitest';
import { redactAll, redactShapes } from './redact-shapes.ts';

test.each([
  [
    `ServerArgs(model_path='m', api_key='sk-abcdefghijkl', tp_size=8)`,
    `ServerArgs(model_path='m', api_key='[secret]', tp_size=8)`,
  ],
  ['vllm serve m --api-key open-sesame --port 8000', 'vllm serve m --api-key [secret] --port 8000'],
  ['--api-key=open-sesame', '--api-key=[secret]'],
  ['HF_TOKEN=hf_abcdefghijklmnopqrst python', 'HF_TOKEN=[secret] python'],
  ['"password": "swordfish"', '"password": "[secret]"'],
  ['Authorization: Bearer abc.def-ghi', 'Authorization: Bearer [secret]'],
  ['got hf_abcdefghijklmnopqrst from the hub', 'got [secret] from the hub'],
])('%s', (text, hidden) => {
  expect(redactShapes(text)).toBe(hidden);
});

test.each([
  'Prefill batch, #new-seq: 1, #new-token: 1, token usage: 0.41, gen throughput (token/s): 612.30',
  `api_key=None, admin_api_key=None, max_new_tokens=4096, tokenizer_path='m'`,
  'the key of the box is wrong; no password was asked',
])('left as it is: %s', (text) => {
  expect(redactShapes(text)).toBe(text);
});

test('all texts of a value, and what stands under the name of a key', () => {
  const value = {
    arguments: { api_key: 'open-sesame', tp_size: '8', hf_token: 'None' },
    lines: ['--api-key open-sesame'],
    n: 3,
    none: undefined,
  };
  expect(redactAll(value, redactShapes)).toEqual({
    ...{
      arguments: { api_key: '[secret]', tp_size: '8', hf_token: 'None' },
      lines: ['--api-key [secret]'],
      n: 3,
      none: undefined,
    },
  });
});
