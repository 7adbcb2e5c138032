/** The closed table of errors: each code is thrown somewhere, and its fault alone gives the exit code. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AerieError, bug, ERRORS, type ErrorCode, EXIT_CODE, systemCodeOf } from './errors.ts';
import { AERIE_VERSION } from './version.ts';

const SRC = join(import.meta.dirname, '..');

test('each code is used somewhere', () => {
  const texts = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && name !== join('base', 'errors.ts'))
    .map((name) => readFileSync(join(SRC, name), 'utf8'))
    .join('\n');
  const made = new Set(['bug.invariant']); // by bug(), in errors.ts itself
  expect(
    Object.keys(ERRORS).filter(
      (code) => !made.has(code) && !new RegExp(`\\b${code.replaceAll('.', '\\.')}(?![.\\w-])`).test(texts),
    ),
  ).toEqual([]);
});

test('each fault has its exit code, and each code takes that of its fault', () => {
  expect(EXIT_CODE).toEqual({ usage: 2, environment: 3, engine: 4, stopped: 5, interrupted: 130, terminated: 143, bug: 70 });
  for (const [code, { fault, title }] of Object.entries(ERRORS)) {
    const error = new AerieError(code as ErrorCode, 'x', { remedy: 'y' });
    expect([error.fault, error.exitCode]).toEqual([fault, EXIT_CODE[fault]]);
    expect(title).toMatch(/^[A-Z].*[^.]$/);
  }
});

test('an error keeps its cause, and a broken rule is a bug', () => {
  const cause = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  expect(new AerieError('disk.full', 'x', { remedy: 'y' }, cause).cause).toBe(cause);
  expect([bug('x').exitCode, bug('x', { a: 1 }).detail.facts]).toEqual([70, { a: 1 }]);
  expect([systemCodeOf(cause), systemCodeOf(undefined), systemCodeOf({ code: 3 })]).toEqual(['ENOSPC', '', '']);
});

test('the version in records is that of the package', () => {
  const { version } = JSON.parse(readFileSync(join(SRC, '..', 'package.json'), 'utf8')) as { version: string };
  expect(AERIE_VERSION).toBe(version);
});
