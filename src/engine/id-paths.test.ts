/** Which version gives its token ids how; and that the page for people says the same. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ENGINES, type EngineName } from './dialect.ts';
import { ID_PATHS, idPathOf } from './id-paths.ts';

test.each<[EngineName, string, string | undefined]>([
  ['embedded', '', 'return-token-ids'],
  ['vllm', '0.8.0', 'text'],
  ['vllm', '0.10.1.1', 'text'],
  ['vllm', '0.10.2', 'return-token-ids'],
  ['vllm', '0.21.0', 'return-token-ids'],
  ['vllm', 'main', undefined],
  ['sglang', '0.4.6.post5', 'text'],
  ['sglang', '0.4.7', 'text'],
  ['sglang', '0.5.3.post3', 'text'],
  ['sglang', '0.5.4', 'rendered'],
  ['sglang', '0.5.9', 'rendered'],
  ['sglang', '0.5.12.post1', 'rendered'],
  ['sglang', '0.5.13', 'meta-info'],
  ['sglang', '0.5.17', 'meta-info'],
  ['sglang', '0.5.18', 'return-token-ids'],
  ['sglang', '', undefined],
  ['openai', '', 'text'],
])('%s %s: %s', (engine, version, kind) => {
  expect(idPathOf(engine, version)?.kind).toBe(kind);
});

test('every engine has rows, newest first, down to its first version; only what is text only says why', () => {
  for (const engine of ENGINES) {
    const rows = ID_PATHS.filter((row) => row.engine === engine);
    const order = rows.map(({ from }) => from[0] * 1e6 + from[1] * 1e3 + from[2]);
    expect(order).toEqual([...order].sort((a, b) => b - a));
    expect(order.at(-1)).toBe(0);
  }
  for (const { kind, because } of ID_PATHS) expect(because === '').toBe(kind !== 'text');
});

test('docs/servers.md has every row of the table', () => {
  const page = readFileSync(new URL('../../docs/servers.md', import.meta.url), 'utf8');
  for (const { how, needs } of ID_PATHS) expect(page).toContain(needs === '' ? how : `${how} | ${needs}`);
});
