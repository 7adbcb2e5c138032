/** A run folder on a network file system is refused before anything is made there. */
import { AerieError } from '../base/errors.ts';
import { networkBehind } from '../host/file-systems.ts';
import { findMount } from '../host/find-mount.ts';

export async function refuseNetworkDisk(folder: string): Promise<void> {
  const mount = await findMount(folder);
  const network = mount === undefined ? undefined : networkBehind(mount);
  if (mount === undefined || network === undefined) return;
  throw new AerieError('disk.network', `${folder} would lie on a network file system: ${mount.type} at ${mount.at}.`, {
    because: `Locks and fsync over ${network} are not what they say: two workers could hold one run, and finished records could be lost.`,
    evidence: [`${mount.source} on ${mount.at} type ${mount.type}`],
    remedy:
      'Copy the run file to a folder on a disk of this machine, and give the same command there. Nothing was made.\n' +
      'aerie doctor FOLDER   says whether a folder will do',
    facts: { folder, type: mount.type, at: mount.at },
  });
}
