/** The events of a launch's life, each with its number and, of another machine, with the machine's name before a path. */
import type { LaunchRecord } from './launch-book.ts';
import type { LauncherOptions } from './launcher-options.ts';

type LaunchFacts = Readonly<Record<string, string | number>>;

export function tellLaunch(
  { emit, name, machine }: Pick<LauncherOptions, 'emit' | 'name' | 'machine'>,
  kind: 'launch.starting' | 'launch.started' | 'launch.adopted' | 'launch.ended',
  record: LaunchRecord,
  facts: LaunchFacts,
): void {
  const { log } = facts;
  const place = log === undefined || machine.isHere ? {} : { log: `${machine.name}:${log}` };
  emit({ kind, subject: name, facts: { launch: record.n, ...facts, ...place } });
}
