/** This machine: the interface of `machine.ts` over the files beside this one. */
import { homedir } from 'node:os';
import { runCommand } from '../../host/commands.ts';
import type { Clock, Host } from '../../host/host.ts';
import { isLaunchShell } from '../launch-script.ts';
import type { DetachedStart, FamilyMember, Machine, ProcessIdentity, ProcessLook } from '../machine.ts';
import { launchHere } from './launch.ts';
import { lookForHolders, readGpus } from './holders.ts';
import { findCarriers, lookAtProcesses, signalProcess } from './observe.ts';
import { findPortOwner } from './port-owner.ts';
import { readSlice } from './read-slice.ts';
import { readResources } from './resources.ts';

export function localMachine(host: Host): Machine {
  return {
    name: 'this machine',
    isHere: true,
    home: async () => host.env['HOME'] ?? homedir(),
    reach: async (port) => ({
      baseUrl: `http://127.0.0.1:${port}`,
      isOpen: () => true,
      drops: () => 0,
      close: async () => undefined,
    }),
    onReachChange: () => () => undefined,
    close: async () => undefined,
    run: ({ env, ...request }) => runCommand({ ...request, env: { ...host.env, ...env } }),
    start: (request) => launchHere(request, host),
    look: (identity, launch) => lookAtLaunch(identity, launch, host.clock),
    findByMarker: findCarriers,
    signal: signalProcess,
    gpus: () => readGpus(host),
    holders: () => lookForHolders(host),
    resources: readResources,
    portOwner: findPortOwner,
    readFile: readSlice,
  };
}

/** Between the end of a program and the status on the disk: a slow disk's sync. */
const STATUS_EVERY_MS = 50;
const STATUS_LOOKS = 60;

async function lookAtLaunch(
  identity: ProcessIdentity,
  { marker, statusPath }: Pick<DetachedStart, 'marker' | 'statusPath'>,
  clock: Clock,
): Promise<ProcessLook> {
  for (let look = 0; ; look++) {
    const seen = await lookAtProcesses(identity, marker);
    const exitStatus = await readExitStatus(statusPath);
    if (exitStatus !== undefined && seen.main === 'unknown') return { ...seen, main: 'gone', exitStatus };
    const hasEnded = seen.main === 'gone' || seen.main === 'zombie';
    const isComing = hasEnded && exitStatus === undefined && seen.family.some((member) => isAboutToWrite(member, seen.family));
    if (!isComing || look === STATUS_LOOKS) return { ...seen, exitStatus };
    await clock.sleep(STATUS_EVERY_MS);
  }
}

/** The waiting shell, once the program that it waits for has ended. */
function isAboutToWrite(member: FamilyMember, family: readonly FamilyMember[]): boolean {
  return isLaunchShell(member.command) && !family.some(({ parent, presence }) => parent === member.pid && presence === 'running');
}

/** The file is renamed into place whole, so what is there is a number. */
async function readExitStatus(path: string): Promise<number | undefined> {
  const slice = await readSlice(path, 0, 20);
  const text = slice === undefined ? '' : new TextDecoder().decode(slice.bytes).trim();
  return /^\d+$/.test(text) ? Number(text) : undefined;
}
