/**
 * A clock that runs fast, for rehearsals and for tests of long waits: hours pass in minutes, and every deadline with them.
 * Only what a program does itself is not faster: replies over HTTP, disks.
 */
import type { Clock } from './host.ts';

export function scaledClock(clock: Clock, rate: number): Clock {
  const beganAt = clock.now();
  const beganElapsed = clock.elapsed();
  return {
    now: () => beganAt + (clock.now() - beganAt) * rate,
    elapsed: () => beganElapsed + (clock.elapsed() - beganElapsed) * rate,
    sleep: (ms, signal) => clock.sleep(ms / rate, signal),
  };
}
