/** The real world. Made once, in main.ts. */
import type { Clock, Host } from './host.ts';
import { openHttp } from './http.ts';
import { startProcess } from './processes.ts';

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

export function nodeHost(): Host {
  return { clock: systemClock, random: Math.random, env: process.env, pid: process.pid, startProcess, openHttp };
}
