/**
 * A project whose run file launches SGLang by `docker run`: docker is the fake one (`fake-docker.mjs`), its image is the lookalike
 * engine, everything else is real. The docker client is on the PATH of the server's machine: behind ssh of that one alone.
 */
import { readFileSync, symlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type FakeDocker, installFakeDocker } from './fake-docker.ts';
import { endsWithTheTest } from './launch-history.ts';
import { type LaunchProject, type LaunchRequest, launchProject } from './launch-project.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));

export interface ContainerProject {
  readonly project: LaunchProject;
  readonly docker: FakeDocker;
  /** Of the log of the launch so far. */
  log(): string;
}

/**
 * `options`: of docker run, before the image. `env`: of the run file. `isHidden`: nothing inside carries the marker, as where its environment
 * may not be read, so that only docker tells what belongs to the launch.
 */
export async function containerProject(
  request: LaunchRequest & {
    readonly options?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly isHidden?: boolean;
  } = {},
): Promise<ContainerProject> {
  const { clockRate = 20, options = '--gpus all --shm-size 32g' } = request;
  const project = await launchProject({ ...request, clockRate });
  endsWithTheTest(project);
  const scenario = project.path('scenario.json');
  const words = ['--as', 'sglang@0.5.8', '--scenario', scenario, '--clock-rate', String(clockRate), '--journal'];
  const hiding = request.isHidden === true ? ['env', '-u', 'AERIE_LAUNCH'] : [];
  const entrypoint = [...hiding, process.execPath, PROGRAM, ...words, project.path('journal.jsonl'), '--'];
  const docker = installFakeDocker(project.folder, { sglang: { entrypoint }, sleeper: { entrypoint: ['sleep', '600'] } });
  symlinkSync(`${docker.binFolder}/docker`, project.path('bin/docker'));
  onTestFinished(() => docker.endAll());
  project.change({
    server: {
      ...request.server,
      command: `docker run ${options} sglang --log-level info`,
      env: { AERIE_LOOKALIKE_GPUS: project.place.cards['AERIE_LOOKALIKE_GPUS'], ...request.env },
    },
  });
  return { project, docker, log: () => readFileSync(project.place.logPath(), 'utf8') };
}
