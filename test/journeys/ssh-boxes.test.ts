/**
 * Runs on GPU boxes that are not as one would wish: one session at a time on a connection, names that a shell would carry out, a user
 * without rights, and no program but sh, the coreutils and what the engine itself needs.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { endsWithTheTest, enginesOf, eventsOf, expectAnsweredOnce, expectNothingLives } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';
import { type LaunchProject, type LaunchRequest, launchProject, STORY_FLAGS } from '../support/launch-project.ts';
import { filesBelow } from '../support/run-folder.ts';
import { isRoot } from '../support/sshd.ts';

async function boxProject(request: LaunchRequest): Promise<LaunchProject> {
  const project = await launchProject({ where: 'ssh', prompts: 4, ...request });
  endsWithTheTest(project);
  return project;
}

/** From nothing to every record, a look at what runs there, and its end. */
async function liveThrough(project: LaunchProject): Promise<number> {
  const ran = await project.aerie('run', 'run.yaml');
  expect(ran.code, ran.stderr).toBe(0);
  expectAnsweredOnce(project, { B1: 4 });
  const [pid = 0, ...others] = enginesOf(project);
  expect(others).toEqual([]);
  const looked = await project.aerie('server', 'verify', 'run.yaml', '--json');
  expect(looked.code, looked.stdout).toBe(0);
  expect(looked.json().data.servers[0]).toMatchObject({ pid, isWell: true, verified: { poolTokens: 159_277 } });
  return pid;
}

async function end(project: LaunchProject): Promise<void> {
  const stopped = await project.aerie('server', 'stop', 'run.yaml');
  expect(stopped.code, stopped.stderr).toBe(0);
  await expectNothingLives(project);
}

/** A shell would end the string, begin another, go to the next line, and make a file of one of these names. */
const HOSTILE = `it's "a" $(touch CARRIED-OUT) \`touch CARRIED-OUT\` \\ ; touch CARRIED-OUT; # ~ * {a,b} %s %n !! ü 模型`;
const SEVERAL_LINES = `${HOSTILE}\n'; touch CARRIED-OUT\n$HOME`;

describeAt('ssh', 'a box', () => {
  test('that takes one session on a connection', async () => {
    const project = await boxProject({ box: { maxSessions: 1 } });
    await liveThrough(project);
    await end(project);
  });

  test('that is not reached at first: it is said at once, and the run begins when it is', async () => {
    const project = await boxProject({});
    const cable = project.place.sshd?.cable;
    await cable?.cut();
    const worker = project.start('run', 'run.yaml');
    await worker.line(/^gpu-box: not reached \(.+\); tried again for at most 30 min; nothing was started$/);
    await cable?.mend();
    await worker.line(/^gpu-box: reached after /);
    const ran = await worker.ended;
    expect(ran.code, ran.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 4 });
    expect(eventsOf(project, 'machine.away')).toEqual([]);
    await end(project);
  });

  test('whose paths, names and values are made of quotes, line feeds and commands: all of them arrive, none is carried out', async () => {
    const project = await boxProject({});
    const workdir = join(project.place.workFolder, `work ${HOSTILE.replaceAll('/', '')}`);
    mkdirSync(workdir);
    const log = join(project.place.workFolder, `logs ${HOSTILE.replaceAll('/', '')}`, `-rf ${HOSTILE.replaceAll('/', '')}.log`);
    project.change({
      server: { workdir, log, env: { HOSTILE } },
      flags: {
        ...STORY_FLAGS,
        'served-model-name': `${project.path('models/moonshotai/Kimi-K2.5')}`,
        'chat-template': SEVERAL_LINES,
      },
    });
    const pid = await liveThrough(project);
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe(workdir);
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')).toContain(`HOSTILE=${HOSTILE}`);
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    expect(words[words.indexOf('--chat-template') + 1]).toBe(SEVERAL_LINES);
    expect(readFileSync(log, 'utf8')).toContain('max_total_num_tokens=159277');
    const logs = await project.aerie('server', 'logs', 'run.yaml');
    expect(logs.stdout).toBe(readFileSync(log, 'utf8'));
    await end(project);
    const made = [...filesBelow(project.folder), ...readdirSync(process.cwd()), ...readdirSync(dirname(project.folder))];
    expect(made.filter((path) => path.includes('CARRIED-OUT') && !path.includes('touch'))).toEqual([]);
    expect(existsSync(join(userInfo().homedir, 'CARRIED-OUT'))).toBe(false);
  });

  test.runIf(isRoot || process.env['AERIE_REQUIRE_ALL'] === '1')('whose user has no rights', async () => {
    const project = await boxProject({ box: { account: {} } });
    const pid = await liveThrough(project);
    expect(statSync(`/proc/${pid}`).uid).not.toBe(0);
    await end(project);
  });

  test('that has sh, the coreutils and what the engine needs, and nothing else', async () => {
    const project = await boxProject({ box: { isBare: true } });
    await liveThrough(project);
    expect(eventsOf(project, 'launch.started')).toHaveLength(1);
    await end(project);
  });
});
