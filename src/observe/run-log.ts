/** Events → `logs/aerie.log` in the run folder, one JSON line each. The log tells what the ledger tells, nothing else. */
import { pino } from 'pino';
import type { Event } from '../base/events.ts';

export interface RunLog {
  write(event: Event): void;
  close(): void;
}

export function openRunLog(path: string): RunLog {
  const destination = pino.destination({ dest: path, append: true, sync: true });
  // A log that cannot be written must not stop a run: the ledger has the events.
  destination.on('error', () => undefined);
  const logger = pino({ base: null, timestamp: false, formatters: { level: (level) => ({ level }) } }, destination);
  return {
    write({ n, at, kind, subject, facts }) {
      logger.info({ n, at: new Date(at).toISOString(), kind, subject, ...facts });
    },
    close() {
      destination.end();
    },
  };
}
