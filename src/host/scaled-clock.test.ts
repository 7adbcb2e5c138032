import { expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { scaledClock } from './scaled-clock.ts';

it('counts and sleeps so many times faster than the clock below it', async () => {
  const below = new ManualClock();
  const fast = scaledClock(below, 60);
  const [now, elapsed] = [fast.now(), fast.elapsed()];
  let isAwake = false;
  void fast.sleep(900_000).then(() => {
    isAwake = true;
  });
  await below.pass(14_999);
  expect(isAwake).toBe(false);
  await below.pass(1);
  expect(isAwake).toBe(true);
  expect(fast.now() - now).toBe(900_000);
  expect(fast.elapsed() - elapsed).toBe(900_000);
});
