/** The process of ssh that holds the connection which the scripts of one project share; asked of ssh itself. */
import { spawnSync } from 'node:child_process';
import { tmpdir, userInfo } from 'node:os';
import type { LaunchProject } from './launch-project.ts';

export function sshMasterOf({ env, place }: Pick<LaunchProject, 'env' | 'place'>): number {
  const path = `ControlPath=${tmpdir()}/aerie-ssh-${userInfo().uid}/%C`;
  const { stderr } = spawnSync(env['AERIE_SSH'] ?? 'ssh', ['-o', path, '-O', 'check', place.machine], { encoding: 'utf8' });
  const [, pid] = /Master running \(pid=(\d+)\)/.exec(stderr) ?? [];
  if (pid === undefined) throw new Error(`there is no shared connection: ${stderr}`);
  return Number(pid);
}
