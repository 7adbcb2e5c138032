/** What a journey over launches looks at, beside what the commands say: the events of the ledger, the server's log and process. */
import { existsSync, readFileSync } from 'node:fs';
import type { LaunchProject } from './launch-project.ts';
import { query } from './run-folder.ts';

type Facts = Readonly<Record<string, string | number | boolean>>;

export function eventsOf({ runFolder }: Pick<LaunchProject, 'runFolder'>, kind: string): Facts[] {
  return query(runFolder, 'SELECT kind, facts FROM events ORDER BY n')
    .filter((row) => row['kind'] === kind)
    .map(({ facts }) => JSON.parse(String(facts)) as Facts);
}

/** A launch's log, whole: that of the newest one, where its machine has it, or of one that was moved aside. */
export function serverLog({ place }: Pick<LaunchProject, 'place'>, launch?: number): string {
  const newest = place.logPath();
  const aside = `${newest}.${launch}`;
  const path = launch !== undefined && existsSync(aside) ? aside : newest;
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** Seconds of the server's own clock from its first line with a time to its last. */
export function loggedSeconds(log: string): number {
  const times = [...log.matchAll(/^\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)/gm)].map(([, day, time]) => Date.parse(`${day}T${time}`));
  return (Math.max(...times) - Math.min(...times)) / 1000;
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
