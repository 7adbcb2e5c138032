import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

function askers(slots: Slots, names: string, signal?: AbortSignal): string[] {
  const got: string[] = [];
  for (const name of names) void slots.take(signal).then((isTaken) => got.push(isTaken ? name : `-${name}`));
  return got;
}

/** All that can go on has gone on. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('one goes first, a few follow once it is connected, in the order they came', async () => {
  const slots = new Slots(3);
  const got = askers(slots, 'abcdef');
  await settle();
  expect(got).toEqual(['a']);
  slots.isConnected = true;
  await settle();
  expect(got).toEqual(['a', 'b', 'c']);
  slots.give();
  await settle();
  expect(got).toEqual(['a', 'b', 'c', 'd']);
  slots.isConnected = false;
  for (let nth = 0; nth < 3; nth++) slots.give();
  await settle();
  expect(got).toEqual(['a', 'b', 'c', 'd', 'e']);
  slots.give();
  await settle();
  expect(got).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
});

test('who does not wait any longer takes nobody else’s place', async () => {
  const slots = new Slots(1);
  const aborter = new AbortController();
  const first = askers(slots, 'a');
  const second = askers(slots, 'b', aborter.signal);
  const third = askers(slots, 'c');
  await settle();
  aborter.abort();
  slots.give();
  await settle();
  expect([first, second, third]).toEqual([['a'], ['-b'], ['c']]);
  expect(await slots.take(aborter.signal)).toBe(false);
});
