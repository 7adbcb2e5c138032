/** A time limit aborts in time, says why, and leaves nothing behind. */
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { ManualClock, settle } from '../../test/support/manual-clock.ts';
import { openTimeLimit } from './time-limit.ts';

test('it aborts when the time is up, and says so', async () => {
  const clock = new ManualClock();
  const limit = openTimeLimit(clock, 1000, new AbortController().signal);
  await clock.pass(999);
  expect([limit.signal.aborted, limit.isUp]).toEqual([false, false]);
  await clock.pass(1);
  expect([limit.signal.aborted, limit.isUp]).toEqual([true, true]);
});

test('it aborts with its owner, which is not the time being up', async () => {
  const clock = new ManualClock();
  const owner = new AbortController();
  const limit = openTimeLimit(clock, 1000, owner.signal);
  owner.abort();
  expect([limit.signal.aborted, limit.isUp]).toEqual([true, false]);
  await clock.pass(5000);
  expect(limit.isUp).toBe(false);
  expect(openTimeLimit(clock, 1000, owner.signal).signal.aborted).toBe(true);
});

test('ten thousand of them, closed, leave one listener and no sleeper', async () => {
  const clock = new ManualClock();
  const owner = new AbortController();
  for (let nth = 0; nth < 10_000; nth++) {
    const limit = openTimeLimit(clock, 3_600_000, owner.signal);
    limit.close();
    expect(limit.signal.aborted).toBe(false);
  }
  await settle();
  expect([getEventListeners(owner.signal, 'abort').length, clock.sleeping]).toEqual([1, 0]);
});

test('an owner with many open limits has one listener, and aborts those that are open', () => {
  const clock = new ManualClock();
  const owner = new AbortController();
  const limits = Array.from({ length: 100 }, () => openTimeLimit(clock, 1000, owner.signal));
  for (const limit of limits.slice(0, 40)) limit.close();
  expect(getEventListeners(owner.signal, 'abort').length).toBe(1);
  owner.abort();
  expect(limits.map(({ signal }) => signal.aborted)).toEqual(limits.map((_, nth) => nth >= 40));
});
