/** The beginning and the end of a log that a program shows: no line twice, the half of none, and what lies between by its count. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { readPrintedEnds, renderPrintedEnds } from '../../machine/survey/printed-ends.ts';
import { joinEnds } from './log-ends.ts';

const isLine = (line: string) => /^#\d+ /.test(line);
const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => `#${from + at} text\n`).join('');

test('an end that begins in the beginning goes on behind it, where the half lines are left out on both sides', () => {
  const joined = joinEnds({ beginning: `${lines(1, 20)}#21 te`, ending: `xt\n${lines(15, 30)}#31 t`, lines: 30 }, isLine);
  expect(joined).toEqual({ beginning: lines(1, 20), ending: lines(21, 30), between: 0 });
  expect(joinEnds({ beginning: lines(1, 9), ending: lines(1, 9), lines: 9 }, isLine)).toMatchObject({ ending: '', between: 0 });
  expect(joinEnds({ beginning: '', ending: lines(1, 9), lines: 9 }, isLine)).toMatchObject({ ending: lines(1, 9), between: 0 });
});

test('a gap is as many lines as were counted, with the one that was cut; uncounted it is not known', () => {
  const cut = { beginning: `${lines(1, 20)}#21 te`, ending: `xt\n${lines(90, 100)}`, lines: 100 };
  expect(joinEnds(cut, isLine)).toMatchObject({ ending: lines(90, 100), between: 69 });
  expect(joinEnds({ ...cut, lines: undefined }, isLine).between).toBeUndefined();
  expect(joinEnds({ beginning: lines(1, 20), ending: '', lines: undefined }, isLine).between).toBeUndefined();
});

/** Runs the script as a machine does, here. */
async function ask(whole: readonly string[], last: readonly string[], waitSeconds: number) {
  const script = renderPrintedEnds({ nonce: 'n1', whole, last, waitSeconds });
  const { stdout } = await promisify(execFile)('sh', ['-c', script], { maxBuffer: 2 ** 26 });
  expect(stdout.length).toBeLessThan(4_000_000);
  return readPrintedEnds(stdout, 'n1');
}

test('what is longer than fits comes as its two ends with all of its lines counted; one that never ends, by its end alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-log-ends-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'log');
  const noise = () => Math.random().toString(36).slice(2).padEnd(12, 'x');
  writeFileSync(file, Array.from({ length: 300_000 }, (_, at) => `#${at + 1} ${noise()}${noise()}\n`).join(''));
  const last = ['tail', '-n', '20000', file];
  const seen = await ask(['cat', file], last, 20);
  expect(seen?.lines).toBe(300_000);
  const { beginning, ending, between = 0 } = joinEnds(seen ?? { beginning: '', ending: '', lines: 0 }, isLine);
  const [first, rest] = [beginning, ending].map((text) => text.split('\n').length - 1);
  expect(between).toBeGreaterThan(0);
  expect((first ?? 0) + between + (rest ?? 0)).toBe(300_000);
  expect(ending.split(' ')[0]).toBe(`#${(first ?? 0) + between + 1}`);

  const endless = await ask(['tail', '-f', '-n', '+1', file], last, 1);
  expect(endless?.lines).toBeUndefined();
  expect(endless?.ending).toMatch(/\n#300000 \w+\n$/);
});
