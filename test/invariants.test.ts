/** Each promise is cited by a test, and named in docs/guarantees.md. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { INVARIANTS } from './invariants.ts';

const root = join(import.meta.dirname, '..');

function testTexts(): string {
  return ['src', 'test']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(root, folder, name)),
    )
    .filter((path) => /\.test\.ts$|\/journeys\/launch\/.*\.ts$/.test(path))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
}

test('every promise is proved by a test', () => {
  const texts = testTexts();
  const unproved = Object.keys(INVARIANTS).filter((id) => !new RegExp(`proves\\(\\s*'${id}'`).test(texts));
  expect(unproved).toEqual([]);
});

test('every promise stands in docs/guarantees.md', () => {
  const guarantees = readFileSync(join(root, 'docs', 'guarantees.md'), 'utf8');
  expect(Object.keys(INVARIANTS).filter((id) => !guarantees.includes(`\`${id}\``))).toEqual([]);
});
