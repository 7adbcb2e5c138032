/** Events are numbered inside the transaction that makes them true: a reader that has seen n has missed nothing before it. */
import type { Event, EventKind, Facts, Happening } from '../../base/events.ts';
import type { Database } from './database.ts';
import { number, type Row, text } from './row.ts';

/** Inside a transaction. */
export function appendEvents(database: Database, at: number, happenings: readonly Happening[]): readonly Event[] {
  return happenings.map(({ kind, subject, facts }) => {
    const { lastId } = database.run('INSERT INTO events (at, kind, subject, facts) VALUES (:at, :kind, :subject, :facts)', {
      at,
      kind,
      subject,
      facts: JSON.stringify(facts),
    });
    return { n: lastId, at, kind, subject, facts };
  });
}

export function readEvents(database: Database, after: number, most: number): readonly Event[] {
  return database.all('SELECT * FROM events WHERE n > :after ORDER BY n LIMIT :most', { after, most }).map(toEvent);
}

/** Kinds and facts are written only by `appendEvents`, from typed values. */
function toEvent(row: Row): Event {
  return {
    n: number(row, 'n'),
    at: number(row, 'at'),
    kind: text(row, 'kind') as EventKind,
    subject: text(row, 'subject'),
    facts: JSON.parse(text(row, 'facts')) as Facts,
  };
}
