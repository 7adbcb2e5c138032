/** Events → `logs/aerie.log` in the run folder, one JSON line each. The log tells what the ledger tells, nothing else. */
import { pino } from 'pino';
import type { Event } from '../base/events.ts';

export interface RunLog {
  write(event: Event): void;
  close(): void;
}

/** A log that cannot be opened or written must not stop a run: the ledger has the events. */
export function openRunLog(path: string): RunLog {
  let destination: ReturnType<typeof pino.destination>;
  try {
    destination = pino.destination({ dest: path, append: true, sync: true });
  } catch {
    return { write: () => undefined, close: () => undefined };
  }
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
