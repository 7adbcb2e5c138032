/**
 * Where the crash tests kill the process. `AERIE_CRASH_AT=after-append:3` ends it with SIGKILL the third time that
 * point is passed. Not for people: it is how the promises of docs/guarantees.md are tested where chance rarely hits.
 */
import type { Host } from '../host/host.ts';

export function plantCrash(host: Host): (point: string) => void {
  const planted = host.env['AERIE_CRASH_AT'];
  if (planted === undefined || planted === '') return () => undefined;
  const [wanted, times] = planted.split(':');
  let left = Math.max(1, Number(times ?? 1) || 1);
  return (point) => {
    if (point !== wanted) return;
    left -= 1;
    if (left === 0) process.kill(host.pid, 'SIGKILL');
  };
}
