/**
 * Where a launched server of a journey lives: on this machine, or on `gpu-box` behind ssh, which is a real sshd on loopback behind
 * a cable. There the GPUs, their nvidia-smi and a home folder are the box's alone, and nothing of them is in the environment of Aerie.
 * What it cannot show: it is the same kernel and the same disk, so paths and pids of the box can be looked at by tests directly.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import type { Project } from './cli.ts';
import { type FakeCards, installFakeNvidiaSmi } from './fake-nvidia-smi.ts';
import { hasSshd, type SshdRequest, startSshd, type TestSshd } from './sshd.ts';

export type Where = 'here' | 'ssh';

export interface LaunchPlace {
  readonly where: Where;
  /** As Aerie's sentences name it. */
  readonly machine: string;
  /** Behind the number of a launch that is said to live: '' here. */
  readonly on: string;
  /** Of Aerie. */
  readonly env: Readonly<Record<string, string>>;
  /** Of whatever runs beside the server: its cards, and the nvidia-smi that shows them. */
  readonly cards: FakeCards['env'];
  /** Laid over the server in the run file. */
  readonly server: Readonly<Record<string, string>>;
  /** Where its setup lines and its command run: the folder of the run file; behind ssh the home folder. */
  readonly workFolder: string;
  /** Of the newest launch of the server `s`; those before it have `.N` behind. */
  logPath(): string;
  /** undefined: here. */
  readonly sshd: TestSshd | undefined;
}

/** The whole of a journey at one place; a package of its own brings sshd, which CI installs. */
export function describeAt(where: Where, name: string, body: () => void): void {
  const canRun = where === 'here' || hasSshd || process.env['AERIE_REQUIRE_ALL'] === '1';
  describe.runIf(canRun && process.platform === 'linux')(`${name}, ${where === 'here' ? 'here' : 'over ssh'}`, body);
}

/** How the box differs from an ordinary one. */
export interface BoxRequest extends SshdRequest {
  /** It has sh, the coreutils and what the lookalikes need (node), and no other program. */
  readonly isBare?: boolean;
}

export async function openPlace(project: Project, where: Where, gpus: number, box: BoxRequest = {}): Promise<LaunchPlace> {
  const cards = installFakeNvidiaSmi(project.folder, { count: gpus, totalMiB: 97_887, baseMiB: 4 }).env;
  if (where === 'here') {
    const logPath = () => project.path('runs/r/logs/s.log');
    return {
      where,
      machine: 'this machine',
      on: '',
      env: cards,
      cards,
      server: {},
      workFolder: project.folder,
      logPath,
      sshd: undefined,
    };
  }
  const home = project.path('box');
  mkdirSync(home);
  const path = box.isBare === true ? { PATH: `${project.path('bin')}:${installBare(project)}` } : {};
  const sshd = await startSshd({ ...box, env: { ...cards, ...path, HOME: home, ...box.env } });
  if (box.account !== undefined) letInto(project);
  const { target, env } = sshd;
  return {
    ...{ where, machine: target, on: ` on ${target}`, env, cards, server: { machine: target }, workFolder: home, sshd },
    logPath() {
      const runs = join(home, '.aerie');
      const [run = 'none', ...others] = existsSync(runs) ? readdirSync(runs) : [];
      if (others.length > 0) throw new Error(`several runs of one project: ${run} ${others.join(' ')}`);
      return join(runs, run, 'logs', 's.log');
    },
  };
}

/** What coreutils has that a script may call; `[` is the shell's own. */
const COREUTILS =
  'base64 basename cat chmod chown cp cut date dd df dirname du echo env expr false head hostid id install link ln ls md5sum mkdir mkfifo mktemp mv nice nl nohup nproc od paste pathchk printenv printf pwd readlink realpath rm rmdir seq sha256sum sleep sort split stat stdbuf sum sync tac tail tee test timeout touch tr true truncate tsort tty uname uniq unlink wc who whoami';

function installBare(project: Project): string {
  const folder = project.path('bare');
  mkdirSync(folder);
  for (const name of ['sh', ...COREUTILS.split(' ')]) {
    const from = ['/usr/bin', '/bin'].map((place) => join(place, name)).find((path) => existsSync(path));
    if (from !== undefined) symlinkSync(from, join(folder, name));
  }
  symlinkSync(process.execPath, join(folder, 'node'));
  return folder;
}

/** Another user finds the engine's scenario, writes its journal, and counts what it holds of the cards. */
function letInto(project: Project): void {
  for (const name of ['', 'box', 'gpus']) chmodSync(project.path(name), 0o777);
}
