/** The processes of a launch on this machine: who they are, how they are, and a signal to one of them. */
import { isOutOfReach, systemCodeOf } from '../../base/errors.ts';
import {
  describeLook,
  describeMember,
  findMembers,
  isSame,
  type LookWithoutStatus,
  type SeenStat,
  UNSEEN,
} from '../describe-look.ts';
import { findFamily } from '../family.ts';
import type { FamilyMember, ProcessIdentity, SignalResult } from '../machine.ts';
import { hasEnded } from '../parse-stat.ts';
import { askEach, hasProc, readAllStats, readBootId, readEnvironment, readProc, readStat } from './proc.ts';

/** All of a look but the exit status, which is a file's. */
export async function lookAtProcesses(identity: ProcessIdentity, marker: string): Promise<LookWithoutStatus> {
  if (!hasProc()) return UNSEEN;
  return await seeProcesses(identity, marker).catch((thrown: unknown) => {
    if (isOutOfReach(thrown)) return UNSEEN;
    throw thrown;
  });
}

async function seeProcesses(identity: ProcessIdentity, marker: string): Promise<LookWithoutStatus> {
  const bootId = await readBootId();
  const { main, family } = findMembers(await findMarked(marker), bootId, identity);
  const members = family.map(async (stat) => {
    const [commandLine = '', status = '', io = ''] = await Promise.all(
      ['cmdline', 'status', 'io'].map((name) => readProc(`/proc/${stat.pid}/${name}`)),
    );
    return [stat, { commandLine, status, io }] as const;
  });
  return describeLook(main, await Promise.all(members), bootId);
}

export async function findCarriers(marker: string): Promise<FamilyMember[]> {
  const [found, bootId] = await Promise.all([findMarked(marker), readBootId()]);
  const members = findFamily(found, undefined).map(async (stat) =>
    describeMember(stat, (await readProc(`/proc/${stat.pid}/cmdline`)) ?? '', bootId),
  );
  return Promise.all(members);
}

/** The identity is read again right before the signal is sent. */
export async function signalProcess(identity: ProcessIdentity, signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): Promise<SignalResult> {
  if (!hasProc()) return 'not-permitted'; // nobody can say that it is still the same process
  const [stat, bootId] = await Promise.all([readStat(identity.pid), readBootId()]);
  if (stat === undefined) return 'gone';
  if (!isSame(stat, bootId, identity)) return 'another-process';
  if (hasEnded(stat.state)) return 'gone';
  try {
    process.kill(identity.pid, signal);
    return 'sent';
  } catch (thrown) {
    return systemCodeOf(thrown) === 'ESRCH' ? 'gone' : 'not-permitted';
  }
}

async function findMarked(marker: string): Promise<SeenStat[]> {
  const stats = await readAllStats();
  const word = `AERIE_LAUNCH=${marker}`;
  return askEach(stats, async (stat) => {
    const carriesMarker = (await readEnvironment(stat.pid))?.includes(word) === true;
    return { ...stat, carriesMarker, hasEnded: hasEnded(stat.state) };
  });
}
