/** The real world. Made once, in main.ts. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock, Host } from './host.ts';
import { openHttp } from './http.ts';
import { startProcess } from './processes.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  async sleep(ms, signal) {
    await delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  },
};

export function nodeHost(): Host {
  return { clock: systemClock, random: Math.random, env: process.env, pid: process.pid, startProcess, openHttp };
}
