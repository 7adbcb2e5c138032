/** A launch of the book, opened to be watched: the way to it, its log (and the mirror of one elsewhere), the container around it. */
import type { LiveVerdict } from '../../diagnosis/live/look.ts';
import { containedOf } from './contained-launch.ts';
import { type LaunchAddress, reachLaunch } from './launch-address.ts';
import type { LaunchRecord } from './launch-book.ts';
import { LaunchedEngine } from './launched-engine.ts';
import type { LauncherOptions } from './launcher-options.ts';

export interface OpenedFor {
  readonly address: LaunchAddress;
  /** Told when the launch is over, with what is known of why. */
  readonly onOver: (verdict: LiveVerdict) => Promise<void>;
}

export async function openEngine(
  options: LauncherOptions,
  record: LaunchRecord,
  { address, onOver }: OpenedFor,
): Promise<LaunchedEngine> {
  const { name, emit, dialect, host, headers, asked, checkRemedy, mirrorOf } = options;
  const contained = containedOf(options.machine, record);
  const machine = contained ?? options.machine;
  const mirror = mirrorOf?.(record);
  const reach = await reachLaunch(machine, record, address);
  const control = host.openHttp({ baseUrl: reach.baseUrl, connections: 2, headers, isDirect: true });
  return new LaunchedEngine({
    ...{ name, emit, machine, dialect, control, reach, clock: host.clock, launch: record, asked, onOver },
    ...(checkRemedy === undefined ? {} : { checkRemedy }),
    ...(contained === undefined ? {} : { keepLog: () => contained.keepLog(record) }),
    ...(mirror === undefined ? {} : { mirror }),
  });
}
