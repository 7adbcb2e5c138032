/** The real world. Made once, in main.ts. */
import type { Clock, Host } from './host.ts';
import { openHttp } from './http.ts';
import { startProcess } from './processes.ts';
import { scaledClock } from './scaled-clock.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  // Not `timers/promises`, which rejects on an abort: an error with its stack for every request whose time was not up.
  sleep(ms, signal) {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      signal?.addEventListener('abort', wake, { once: true });
    });
  },
};

/** AERIE_CLOCK_RATE is for rehearsals and tests of long waits: how many times faster than the world this process lives. */
export function nodeHost(): Host {
  const rate = Number(process.env['AERIE_CLOCK_RATE'] ?? 1);
  const clock = rate > 0 && rate !== 1 ? scaledClock(systemClock, rate) : systemClock;
  return {
    clock,
    random: Math.random,
    env: process.env,
    pid: process.pid,
    startProcess,
    openHttp: (options) => openHttp(options, process.env),
  };
}
