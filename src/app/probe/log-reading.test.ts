/** A log is read whole where it can be, and by its beginning and its end with the right numbers where it cannot. Real files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readSlice } from '../../machine/local/read-slice.ts';
import type { SurveyedLog } from '../../machine/survey/survey.ts';
import { LogReading } from './log-reading.ts';

const machine = { readFile: readSlice };
const READY = '[2026-02-01 10:00:09] The server is fired up and ready to roll!\n';
const DECODE =
  '[2026-02-01 10:01:00 TP0] Decode batch, #running-req: 34, #token: 90000, token usage: 0.56, gen throughput (token/s): 600.00, #queue-req: 116, \n';

function fileOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-log-reading-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'log'), text);
  return join(folder, 'log');
}

function surveyed(text: string, beginning: number, ending: number, counted = true): SurveyedLog {
  const all = Buffer.from(text);
  const from = all.length - ending;
  return {
    ...{ path: '/s.log', realPath: '/s.log', kind: 'read', bytes: all.length, modifiedAt: 0, file: '', grown: Buffer.alloc(0) },
    ...{ beginning: all.subarray(0, beginning), ending: { from, bytes: all.subarray(from) } },
    counted: counted ? { lines: text.split('\n').length - 1, bytes: all.length } : undefined,
  };
}

test('here the whole of it, and on from there', async () => {
  const path = fileOf(READY + DECODE.repeat(100));
  const reading = new LogReading(path);
  expect(await reading.readHere(machine, path, () => false)).toBe(true);
  expect(reading.account()).toMatchObject({ lines: 101, ready: { line: 1 } });
  expect(reading.unread).toBe('');
  writeFileSync(path, READY + DECODE.repeat(101));
  await reading.readHere(machine, path, () => true);
  expect(reading.account().lines).toBe(102);
  expect(await new LogReading('/nowhere').readHere(machine, '/nowhere', () => false)).toBe(false);
});

test('where the time is up: its beginning and its last part, and what was left out is said', async () => {
  const path = fileOf(`${READY}${`${'x'.repeat(999)}\n`.repeat(30_000)}${DECODE}`);
  const reading = new LogReading(path);
  let chunks = 0;
  await reading.readHere(machine, path, () => ++chunks > 1);
  const account = reading.account();
  expect(account.ready?.line).toBe(1);
  expect(account.work).toHaveLength(1);
  expect(reading.unread).toMatch(/read 24 MiB of .*; lines after it could not be counted/);
});

test('elsewhere: one that comes whole is whole, where both parts overlap too', () => {
  const text = READY + DECODE.repeat(50);
  for (const [beginning, ending] of [
    [text.length, text.length],
    [3000, text.length - 2000],
    [3000, text.length - 3000],
  ] as const) {
    const reading = new LogReading('/s.log');
    reading.takeSurveyed(surveyed(text, beginning, ending));
    expect(reading.account()).toMatchObject({ lines: 51, ready: { line: 1 } });
    expect(reading.unread).toBe('');
  }
});

test('elsewhere: a gap keeps the numbers of the lines behind it, and the half line at its end is none', () => {
  const text = READY + DECODE.repeat(5000) + READY.replace('fired up', 'FIRED up');
  const reading = new LogReading('/s.log');
  reading.takeSurveyed(surveyed(text, 1000, 777));
  const account = reading.account();
  expect(account.lines).toBe(5002);
  expect(account.work.at(-1)?.line).toBe(5001);
  expect(reading.unread).toMatch(/^\/s\.log: read 1\.7 KiB of .*, its beginning and its end$/);
  const uncounted = new LogReading('/s.log');
  uncounted.takeSurveyed(surveyed(text, 1000, 777, false));
  expect(uncounted.account().lines).toBeLessThan(50);
  expect(uncounted.unread).toContain('their numbers are too small');
});
