/**
 * A project whose run file launches SGLang by `srun`: Slurm is the fake one (`fake-slurm.mjs`), what it starts is the lookalike engine,
 * everything else is real. srun, squeue and scancel are on the PATH of the server's machine: behind ssh of that one alone.
 */
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type FakeJob, type FakeSlurm, installFakeSlurm } from './fake-slurm.ts';
import { endsWithTheTest } from './launch-history.ts';
import { type LaunchProject, type LaunchRequest, launchProject, STORY_FLAGS } from './launch-project.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));
export const SECRET = 'hf_0123456789abcdef';

/** `options`: of srun. The engine listens everywhere, as a server on another node must; its port is of the loopback alone where it is not. */
export async function slurmProject(
  request: LaunchRequest & { readonly options?: string; readonly host?: string } = {},
): Promise<{ readonly project: LaunchProject; readonly slurm: FakeSlurm }> {
  const { options = '--gpus=8', host = '0.0.0.0', clockRate = 20 } = request;
  const flags = { ...STORY_FLAGS, host };
  const project = await launchProject({ prompts: 4, clockRate, secrets: { HF_TOKEN: SECRET }, ...request, flags });
  endsWithTheTest(project);
  const slurm = installFakeSlurm(project.folder, project.path('bin'));
  onTestFinished(() => slurm.endAll());
  const own = `--as sglang@0.5.8 --scenario ${project.path('scenario.json')} --clock-rate ${clockRate} --journal ${project.path('journal.jsonl')}`;
  const command = `srun ${options} ${process.execPath} ${PROGRAM} ${own} --`;
  project.change({ server: { command, env: { HF_TOKEN: '$HF_TOKEN' }, ...request.server } });
  return { project, slurm };
}

export function runningJobs(slurm: FakeSlurm): FakeJob[] {
  return slurm.jobs().filter(({ pid, isOver }) => pid !== undefined && !isOver);
}
