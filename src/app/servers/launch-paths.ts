/** Where a launch lives on its machine: the work folder, its log, and what it leaves behind about itself. */
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { sha256Hex } from '../../base/ids.ts';
import type { Machine } from '../../machine/machine.ts';
import type { LaunchPaths } from '../../server/launch/begin-launch.ts';
import { mirrorPath } from '../../server/launch/mirror-place.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';

/** Tells runs of one name apart that were started from different folders, or from different machines, on the same box. */
const ID_DIGITS = 8;

/** Behind ssh all of it is below `~/.aerie/RUN-ID/`, unless the run file says otherwise. */
export async function launchPaths(run: RunSpec, server: ServerSpec, machine: Machine): Promise<LaunchPaths> {
  if (machine.isHere) {
    return {
      workFolder: server.workdir === '' ? dirname(run.file) : server.workdir,
      logPath: server.log === '' ? mirrorPath(run.serverFolder, server.name) : server.log,
      stateFolder: join(run.serverFolder, 'servers'),
    };
  }
  const home = await machine.home();
  const id = sha256Hex(`${hostname()}\n${run.serverFolder}`).slice(0, ID_DIGITS);
  const folder = `${home}/.aerie/${run.name}-${id}`;
  return {
    workFolder: server.workdir === '' ? home : server.workdir,
    logPath: server.log === '' ? `${folder}/logs/${server.name}.log` : server.log,
    stateFolder: `${folder}/servers`,
  };
}
