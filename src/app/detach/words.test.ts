/** What a worker says until it works: an error comes through whole, and whatever else is on the pipe is nobody's word. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { AerieError, bug } from '../../base/errors.ts';
import { errorOfWord, failedWord, readWord } from './words.ts';

test('an error is thrown here as it was thrown there', () => {
  for (const error of [
    new AerieError('ledger.held-elsewhere', 'held', { remedy: 'wait', because: 'b', evidence: ['e'], facts: { pid: 3 } }),
    bug('impossible'),
  ]) {
    const word = readWord(JSON.stringify(failedWord(error)));
    if (word?.kind !== 'failed') throw new Error('it is no failed word');
    const thrown = errorOfWord(word);
    expect([thrown.code, thrown.message, thrown.detail, thrown.exitCode]).toEqual([
      error.code,
      error.message,
      error.detail,
      error.exitCode,
    ]);
    expect((thrown.cause as Error).stack).toBe(error.stack);
  }
});

test('a line that is none, or was cut, is left out', () => {
  for (const line of ['', '{', 'null', '{"kind":"failed","code":"no.such"}', '{"kind":"other"}', '3'])
    expect(readWord(line)).toBeUndefined();
  fc.assert(fc.property(fc.string(), (line) => void readWord(line)));
});
