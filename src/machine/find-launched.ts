/**
 * What became of a launch whose starter may have died at any moment: from the files that the launch wrote and the marker, nothing
 * else. Speaks through Machine alone.
 *
 * Promises: `none` is for good. The script of a start may wait in a connection that is frozen and come minutes after this look;
 * who says `none` has claimed the launch first, and a script that finds it claimed starts nothing.
 * On failure: `server.not-launched` where the claim can be neither made nor found (`claim-launch.ts`).
 */
import { claimLaunch } from './claim-launch.ts';
import { isLaunchShell, type LaunchReport, parseReport, reportPathOf } from './launch-script.ts';
import type { DetachedStart, FamilyMember, Machine, ProcessIdentity } from './machine.ts';

export type Launched =
  /** Its program is there, or a zombie; `look` says how it is. */
  | { readonly kind: 'running'; readonly identity: ProcessIdentity }
  /** Setup lines are still running, below this shell. */
  | { readonly kind: 'setting-up'; readonly shell: FamilyMember }
  /** It was started and is gone; members that outlived it are in `left`. */
  | { readonly kind: 'ended'; readonly identity: ProcessIdentity; readonly left: readonly FamilyMember[] }
  /** It failed before its program: the setup line and its exit status are in the report. */
  | { readonly kind: 'failed'; readonly report: Extract<LaunchReport, { kind: 'failed' }> }
  /** Nothing of it was ever here, or will be. */
  | { readonly kind: 'none' };

/** Only for who decides about the launch: it will not come after this has said `none`. */
export async function findLaunched(
  machine: Pick<Machine, 'name' | 'findByMarker' | 'readFile' | 'look' | 'run'>,
  launch: Pick<DetachedStart, 'marker' | 'statusPath'>,
): Promise<Launched> {
  const found = await lookFor(machine, launch);
  if (found.kind !== 'none') return found;
  // Claimed by its own script since that look: then its shell is there, or it has died.
  return (await claimLaunch(machine, launch)) ? found : await lookFor(machine, launch);
}

async function lookFor(
  machine: Pick<Machine, 'findByMarker' | 'readFile' | 'look'>,
  { marker, statusPath }: Pick<DetachedStart, 'marker' | 'statusPath'>,
): Promise<Launched> {
  const carriers = await machine.findByMarker(marker);
  const file = await machine.readFile(reportPathOf(statusPath), 0, REPORT_BYTES);
  const report = parseReport(file === undefined ? '' : new TextDecoder().decode(file.bytes));
  if (report.kind === 'failed') return { kind: 'failed', report };
  if (report.kind === 'silent') {
    const shell = carriers.find(({ command }) => isLaunchShell(command));
    return shell === undefined ? { kind: 'none' } : { kind: 'setting-up', shell };
  }
  const { pid, startTicks, bootId } = report;
  const same = carriers.find((member) => member.pid === pid && member.startTicks === startTicks && member.bootId === bootId);
  const identity = { pid, startTicks, bootId, command: same?.command ?? '' };
  if (same !== undefined) return { kind: 'running', identity };
  const look = await machine.look(identity, { marker, statusPath });
  return look.main === 'gone' ? { kind: 'ended', identity, left: look.family } : { kind: 'running', identity };
}

/** A pid, a boot id and one line of /proc/PID/stat. */
const REPORT_BYTES = 4_096;
