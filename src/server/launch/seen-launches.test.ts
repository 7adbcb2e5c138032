import { expect, it } from 'vitest';
import { compareSeen, loadOf } from './seen-launches.ts';

const sample = (line: number, running: number, queued: number, generated: number) => ({
  ...{ line, running, queued, generated, usage: 0.5 },
});

it('takes a load from the later half of the readings at work', () => {
  const samples = [
    sample(1, 2, 0, 40),
    sample(2, 0, 0, 0),
    sample(3, 10, 0, 100),
    sample(4, 34, 116, 600),
    sample(5, 36, 114, 602),
  ];
  expect(loadOf(samples)).toEqual({ running: 35, queued: 115, inFlight: 150, tokensPerSecond: 601 });
});

it('has no load where nothing was generated', () => {
  expect(loadOf([])).toBeUndefined();
  expect(loadOf([sample(1, 0, 0, 0)])).toBeUndefined();
});

it('has nothing to say of launches that differ in their port alone', () => {
  const launch = { n: 1, flags: { port: 8000, tp: 8 }, env: {}, kvType: { type: 'bf16', bits: 16 }, poolTokens: 1000 };
  expect(compareSeen(launch, { ...launch, n: 2, flags: { port: 8001, tp: 8 } }, () => undefined)).toBeUndefined();
});
