/**
 * A run on a GPU box behind ssh, and its network cable: a real sshd on loopback behind a proxy that resets every connection (cut) or
 * passes nothing on and tells nobody (frozen). One command all the way; the server there is never started twice, no prompt is
 * blamed, and what was asked is there once.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import type { Cable } from '../support/cable.ts';
import { isAlive, until } from '../support/child-processes.ts';
import { type StartedCli, startAerie } from '../support/cli.ts';
import { Judge } from '../support/judge.ts';
import { endsWithTheTest, enginesOf, eventsOf, expectAnsweredOnce, neverTwoEngines } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';
import { type LaunchProject, type LaunchRequest, launchProject, QUICK_PHASES } from '../support/launch-project.ts';
import { promptRow } from '../support/lookalike-project.ts';
import { sshMasterOf } from '../support/ssh-master.ts';

/** Answers of some seconds: whenever the cable goes, some are under way. */
const SLOW = { answerTokens: { kind: 'fixed', tokens: 600 } };
const SAMPLING = { 'max-tokens': 700, seed: 7 };
/** Only of a launch: the preflight runs setup lines too, to ask the engine for its help. */
const GATE = 'test -z "$AERIE_LAUNCH" || { touch begun; while test ! -e go; do sleep 0.1; done; }';

const answered = (project: LaunchProject) => project.journal().filter(({ event }) => event === 'answered').length;
const received = (project: LaunchProject) => project.journal().filter(({ event }) => event === 'received').length;
const lives = (project: LaunchProject) => new Set(project.journal().map(({ life }) => life)).size;

async function behindCable(request: LaunchRequest): Promise<{ project: LaunchProject; cable: Cable }> {
  const project = await launchProject({ where: 'ssh', scenario: SLOW, run: { sampling: SAMPLING }, ...request });
  const { sshd } = project.place;
  if (sshd === undefined) throw new Error('no box');
  endsWithTheTest(project);
  return { project, cable: sshd.cable };
}

/** The nth time that a line of this kind is said. */
async function nth(worker: StartedCli, n: number, pattern: RegExp): Promise<void> {
  let isOver = false;
  void worker.ended.then(() => (isOver = true));
  const count = () =>
    worker
      .stderr()
      .split('\n')
      .filter((line) => pattern.test(line)).length;
  while (count() < n) {
    if (isOver) throw new Error(`it ended before ${pattern} was said ${n} times:\n${worker.stderr()}`);
    await sleep(50);
  }
}

const AWAY = /^gpu-box: out of reach \(.+\); what runs there goes on/;
const BACK = /^gpu-box: back after /;

/** One launch for all of it, nobody judged, nothing set aside, and the machine said to be away and back so often. */
function expectOneLaunch(project: LaunchProject, prompts: number, away: number): void {
  expectAnsweredOnce(project, { B1: prompts });
  expect(lives(project)).toBe(1);
  expect(project.book().launches).toBe(1);
  expect(eventsOf(project, 'launch.starting')).toHaveLength(1);
  for (const kind of ['verdict.given', 'launch.ended', 'launch.changed', 'prompt.set-aside'])
    expect(eventsOf(project, kind)).toEqual([]);
  expect(eventsOf(project, 'machine.away')).toHaveLength(away);
  expect(eventsOf(project, 'machine.back')).toHaveLength(away);
}

describeAt('ssh', 'the cable is pulled', () => {
  proves(
    'machine:away-is-not-dead',
    'while the model loads and while answers come: one command, from nothing to every record',
    async () => {
      const prompts = 30;
      const { project, cable } = await behindCable({
        prompts,
        version: '0.5.18', // gives ids, which the judge reads
        clockRate: 4, // a frozen line is noticed after 15 to 20 s: by Aerie's clock no longer than a server may stand still
        scenario: { ...SLOW, phases: { ...QUICK_PHASES, 'weight-loading': { seconds: 30 } } },
        run: { 'in-flight': 6, sampling: SAMPLING },
      });
      const asked = Array.from({ length: prompts }, (_, at) => [{ role: 'user', content: promptRow(at).prompt }]);
      const partitions = [{ name: 'B1', prompts: asked, duplicates: 0, badLines: [] }];
      const judge = new Judge({ runFolder: project.runFolder, journal: project.path('journal.jsonl'), partitions });

      const run = project.start('run', 'run.yaml');
      const ended = neverTwoEngines(project, run.ended);
      await run.line(/loading weights/);
      await cable.cut();
      await nth(run, 1, AWAY);
      await sleep(1_000);
      await cable.mend();
      await nth(run, 1, BACK);
      const [pid] = enginesOf(project);

      // Equal answers come together: it is cut when the next ones are under way, and not between.
      await until(() => answered(project) >= 6 && received(project) >= answered(project) + 4, 60_000);
      judge.peek();
      await cable.cut();
      await nth(run, 2, AWAY);
      await cable.mend();
      await nth(run, 2, BACK);

      const before = answered(project);
      await until(() => answered(project) >= before + 6, 60_000);
      judge.peek();
      cable.freeze();
      await nth(run, 3, AWAY);
      judge.peek();
      await cable.mend();
      const { code, stderr } = await ended;
      expect(code, stderr).toBe(0);
      await nth(run, 3, BACK);
      // What was under way when it was cut was asked again.
      expect(received(project)).toBeGreaterThan(prompts);
      expectOneLaunch(project, prompts, 3);
      expect(enginesOf(project)).toEqual([pid]);
      judge.finish();
    },
  );

  test('while it is stopped: the stop says what it waits for, and ends it once the line is mended', async () => {
    const { project, cable } = await behindCable({ prompts: 1 });
    expect((await project.aerie('server', 'start', 'run.yaml')).code).toBe(0);
    await cable.cut();
    const stop = project.start('server', 'stop', 'run.yaml');
    await stop.line(/^gpu-box: not reached \(.+\); tried again for at most 30 s$/);
    expect(enginesOf(project)).toHaveLength(1);
    await cable.mend();
    const { code, stderr } = await stop.ended;
    expect(code, stderr).toBe(0);
    expect(stderr.match(/^gpu-box: not reached/gm)).toHaveLength(1);
    expect(stderr).toMatch(/^gpu-box: reached after /m);
    expect(enginesOf(project)).toEqual([]);
  });

  proves('launch:one-at-a-time', 'while its setup lines run: they go on, and what comes of them is the launch', async () => {
    const { project, cable } = await behindCable({ prompts: 4, server: { setup: [GATE] } });
    const run = project.start('run', 'run.yaml');
    const ended = neverTwoEngines(project, run.ended);
    await until(() => existsSync(join(project.place.workFolder, 'begun')), 60_000);
    await cable.cut();
    await nth(run, 1, AWAY);
    await cable.mend();
    await run.line(/its setup lines still run/);
    writeFileSync(join(project.place.workFolder, 'go'), '');
    const { code, stderr } = await ended;
    expect(code, stderr).toBe(0);
    expectOneLaunch(project, 4, 1);
  });

  proves('launch:one-at-a-time', 'when the report of the start would come: it is found, and not started again', async () => {
    const { project, cable } = await behindCable({ prompts: 4, server: { setup: [GATE] } });
    const run = project.start('run', 'run.yaml');
    const ended = neverTwoEngines(project, run.ended);
    await until(() => existsSync(join(project.place.workFolder, 'begun')), 60_000);
    await cable.cut();
    await nth(run, 1, AWAY);
    writeFileSync(join(project.place.workFolder, 'go'), '');
    await until(() => enginesOf(project).length === 1);
    expect(project.book().current?.identity).toBeUndefined(); // nobody has told
    const [pid] = enginesOf(project);
    await cable.mend();
    const { code, stderr } = await ended;
    expect(code, stderr).toBe(0);
    expect(project.book().current?.identity?.pid).toBe(pid);
    expectOneLaunch(project, 4, 1);
  });

  test('in the middle of a long log: every byte of it comes once, and what stands far up in it is found', async () => {
    const { project, cable } = await behindCable({ prompts: 4 });
    const started = await project.aerie('server', 'start', 'run.yaml');
    expect(started.code, started.stderr).toBe(0);
    appendFileSync(project.place.logPath(), LONG_DAY);
    const whole = readFileSync(project.place.logPath());
    // Its patience is that of a person, 15 s, and not of a fast clock.
    const env = { ...project.env, AERIE_CLOCK_RATE: '1' };
    const copied = startAerie(['server', 'logs', 'run.yaml'], { cwd: project.folder, env });
    const hash = createHash('sha256');
    let bytes = 0;
    copied.child.stdout?.on('data', (piece: string) => {
      hash.update(piece);
      bytes += Buffer.byteLength(piece);
    });
    await until(() => bytes > 2 ** 22);
    await cable.cut();
    expect(bytes).toBeLessThan(whole.length / 2);
    await sleep(1_000);
    await cable.mend();
    const { code, stderr } = await copied.ended;
    expect(code, stderr).toBe(0);
    expect(bytes).toBe(whole.length);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(whole).digest('hex'));

    const run = project.start('run', 'run.yaml');
    await run.line(/launch 1 still runs/);
    await cable.cut();
    await nth(run, 1, AWAY);
    await cable.mend();
    await run.line(/launch 1 verified: holds 159,277 tokens, KV cache bf16/);
    expect((await run.ended).code, run.stderr()).toBe(0);
    expectOneLaunch(project, 4, 1);
  });

  proves(
    'launch:one-at-a-time',
    'and stays out, or Aerie is killed meanwhile: the server lives on, and the same command finds it',
    async () => {
      const { project, cable } = await behindCable({
        prompts: 30,
        run: { 'in-flight': 6, sampling: SAMPLING, patience: '2m' },
      });
      const tired = project.start('run', 'run.yaml', '--json');
      await until(() => answered(project) >= 6, 60_000);
      const [pid = 0] = enginesOf(project);
      await cable.cut();
      const gaveUp = await tired.ended;
      expect(gaveUp.code, gaveUp.stderr).toBe(5);
      const { error } = gaveUp.json();
      expect(error).toMatchObject({ code: 'machine.unreachable', message: expect.stringContaining('gpu-box') });
      expect(error?.remedy).toMatch(/same command/);
      expect(isAlive(pid)).toBe(true);
      await cable.mend();

      const killed = project.start('run', 'run.yaml');
      await killed.line(/^s: launch 1 still runs/);
      const before = answered(project);
      await until(() => answered(project) >= before + 3, 60_000);
      await cable.cut();
      killed.kill('SIGKILL');
      expect((await killed.ended).signal).toBe('SIGKILL');
      await cable.mend();

      const last = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
      expect(last.code, last.stderr).toBe(0);
      expect(last.stderr).toContain(`launch 1 still runs, pid ${pid}`);
      expect(enginesOf(project)).toEqual([pid]);
      expectAnsweredOnce(project, { B1: 30 });
      expect([lives(project), project.book().launches]).toEqual([1, 1]);
      expect(eventsOf(project, 'prompt.set-aside')).toEqual([]);
    },
  );

  proves(
    'machine:away-is-not-dead',
    'out of the hands of ssh itself: the process that holds the shared connection is killed',
    async () => {
      const { project } = await behindCable({ prompts: 20, run: { 'in-flight': 4, sampling: SAMPLING } });
      const run = project.start('run', 'run.yaml');
      const ended = neverTwoEngines(project, run.ended);
      await until(() => answered(project) >= 4, 60_000);
      const master = sshMasterOf(project);
      process.kill(master, 'SIGKILL');
      const { code, stderr } = await ended;
      expect(code, stderr).toBe(0);
      expect(isAlive(master)).toBe(false);
      expectAnsweredOnce(project, { B1: 20 });
      expect([lives(project), project.book().launches]).toEqual([1, 1]);
      for (const kind of ['verdict.given', 'launch.ended', 'prompt.set-aside']) expect(eventsOf(project, kind)).toEqual([]);
    },
  );
});

/** A day at work as SGLang writes it: 16 MB, and the line with the capacity above all of it. */
const LINE =
  '[2026-11-30 21:00:04 TP0] Decode batch, #running-req: 35, #token: 64981, token usage: 0.41, cuda graph: True, gen throughput (token/s): 612.30, #queue-req: 0, ';
const LONG_DAY = Array.from({ length: 100_000 }, (_, at) => `${LINE}${at}\n`).join('');
