/** This machine: the interface of `machine.ts` over the files beside this one. */
import { runCommand } from '../../host/commands.ts';
import { homeFolderOf } from '../../host/home-folder.ts';
import type { Host } from '../../host/host.ts';
import { lookUntilTold, parseExitStatus } from '../look-until-told.ts';
import type { DetachedStart, Machine, ProcessIdentity, ProcessLook } from '../machine.ts';
import { lookForHolders, readGpus } from './holders.ts';
import { launchHere } from './launch.ts';
import { findCarriers, lookAtProcesses, signalProcess } from './observe.ts';
import { findPortOwner } from './port-owner.ts';
import { readSlice } from './read-slice.ts';
import { readResources } from './resources.ts';

export function localMachine(host: Host): Machine {
  return {
    name: 'this machine',
    isHere: true,
    home: async () => homeFolderOf(host.env),
    reach: async (port, address = '127.0.0.1') => ({
      baseUrl: `http://${address.includes(':') ? `[${address}]` : address}:${port}`,
      isOpen: () => true,
      drops: () => 0,
      refusal: () => undefined,
      close: async () => undefined,
    }),
    onReachChange: () => () => undefined,
    close: async () => undefined,
    run: ({ env, ...request }) => runCommand({ ...request, env: { ...host.env, ...env } }),
    start: (request) => launchHere(request, host),
    look: (identity, launch) => lookUntilTold(() => lookHere(identity, launch), host.clock),
    findByMarker: findCarriers,
    signal: signalProcess,
    gpus: () => readGpus(host),
    holders: () => lookForHolders(host),
    resources: readResources,
    portOwner: findPortOwner,
    readFile: readSlice,
  };
}

async function lookHere(
  identity: ProcessIdentity,
  { marker, statusPath }: Pick<DetachedStart, 'marker' | 'statusPath'>,
): Promise<ProcessLook> {
  const seen = await lookAtProcesses(identity, marker);
  const slice = await readSlice(statusPath, 0, 20);
  return { ...seen, exitStatus: parseExitStatus(slice === undefined ? '' : new TextDecoder().decode(slice.bytes)) };
}
