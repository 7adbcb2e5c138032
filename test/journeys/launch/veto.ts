/**
 * The owner's veto against a server that Aerie launched with FP8 KV, over the command line: while it works, when nobody works, with a
 * kill in the middle, and as a rule that no flag can keep. What FP8 made is in no export, and every prompt is there once.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proves } from '../../proves.ts';
import { type CliResult, type StartedCli, startAerie } from '../../support/cli.ts';
import { Judge } from '../../support/judge.ts';
import { enginesOf, eventsOf, neverTwoEngines } from '../../support/launch-history.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { type LaunchProject, launchProject } from '../../support/launch-project.ts';
import { promptRow } from '../../support/lookalike-project.ts';
import { filesBelow, promptStates, query, readShardLines } from '../../support/run-folder.ts';

const GAINS = { tp: 8, 'mem-fraction-static': 0.9, 'max-running-requests': 512, 'schedule-policy': 'lpm' };
const FP8 = { ...GAINS, 'kv-cache-dtype': 'fp8_e4m3' };
const BECAUSE = 'FP8 KV on an INT4 MLA model degrades it noticeably';
const ADD = ['policy', 'add', 'run.yaml'];
const VETO = [...ADD, '--forbid', 'kv-cache=below-16-bit', '--because', BECAUSE, '--by', 'model owner'];
const MANY = 200;

/** Short answers; after so many a life, some are slow, so that a look at the ledger sees the worker before it has done all. */
async function fp8Project(where: Where, prompts: number, quick = prompts): Promise<{ project: LaunchProject; judge: Judge }> {
  const slow = { when: { fromRequest: quick + 1, toRequest: quick + 32 }, do: 'slow', ms: 20_000 };
  const project = await launchProject({
    where,
    prompts,
    version: '0.5.18',
    flags: FP8,
    scenario: { answerTokens: { kind: 'uniform', min: 8, max: 32 }, faults: [slow] },
    run: { 'in-flight': 16 },
  });
  const asked = Array.from({ length: prompts }, (_, at) => [{ role: 'user', content: promptRow(at).prompt }]);
  const judge = new Judge({
    runFolder: project.runFolder,
    journal: project.path('journal.jsonl'),
    partitions: [{ name: 'B1', prompts: asked, duplicates: 0, badLines: [] }],
  });
  return { project, judge };
}

/** The book comes after the ledger's tables. */
const doneOf = ({ runFolder }: LaunchProject): number =>
  existsSync(join(runFolder, 'servers', 's.json')) ? (promptStates(runFolder)['done'] ?? 0) : 0;

/** Looks until it holds, or until what should make it so has ended. */
async function until(holds: () => boolean, ended: Promise<unknown>): Promise<void> {
  let isOver = false;
  void ended.then(() => (isOver = true));
  while (!holds()) {
    if (isOver) throw new Error('it ended before that was so');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** `live/bf16`: how many records are in which state, by the KV type of their launches. */
function recordStates({ runFolder }: LaunchProject): Record<string, number> {
  const rows = query(
    runFolder,
    `SELECT state || '/' || kv_cache_dtype AS what, count(*) AS n FROM records JOIN launches ON id = launch GROUP BY what`,
  );
  return Object.fromEntries(rows.map((row) => [String(row['what']), Number(row['n'])]));
}

/** Every prompt once in what a trainer gets, each made with 16 bits; the check and the judge find nothing. */
async function expectMadeAnew(project: LaunchProject, judge: Judge, prompts: number): Promise<void> {
  judge.finish();
  expect(promptStates(project.runFolder)).toEqual({ done: prompts });
  const made = new Set(readShardLines(project.runFolder, 'B1').map(({ id }) => id));
  const exported = await project.aerie('export', 'run.yaml', '--for', 'specforge');
  expect(exported.code, exported.stderr).toBe(0);
  const files = filesBelow(join(project.runFolder, 'export')).filter((path) => path.endsWith('.jsonl'));
  expect(files).not.toEqual([]);
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    const ids = text
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { readonly id: string }).id.replace(/_gen\d+$/, ''));
    expect([ids.length, new Set(ids)]).toEqual([prompts, made]);
    expect(text).not.toMatch(/fp8/i);
  }
  const checked = await project.aerie('check', 'run.yaml', '--json');
  expect(checked.code, checked.stdout).toBe(0);
  expect(checked.json().data).toMatchObject({ records: prompts });
}

/** The server that is there now: without the lever, and with all that was gained beside it. */
function expectWithoutLever(project: LaunchProject): void {
  expect(project.book().current?.flags).toEqual({ ...GAINS, 'kv-cache-dtype': 'bf16' });
  expect(eventsOf(project, 'launch.verified').at(-1)?.facts).toMatchObject({ kvCacheDtype: 'bf16', maxRunningRequests: 512 });
  expect(enginesOf(project)).toEqual([project.book().current?.identity?.pid]);
}

/** The worker with this many records, stopped there, so that it has work before it however slow the owner's machine is. */
async function workTo(project: LaunchProject, records: number, env: Readonly<Record<string, string>> = {}): Promise<StartedCli> {
  const worker = startAerie(['run', 'run.yaml', '--json'], { cwd: project.folder, env: { ...project.env, ...env } });
  await until(() => doneOf(project) >= records, worker.ended);
  worker.kill('SIGSTOP');
  return worker;
}

/** Another process gives a rule to the stopped worker, which is woken when it is asked. */
async function addAtWork(project: LaunchProject, worker: StartedCli, veto: StartedCli): Promise<[CliResult, CliResult]> {
  const control = join(project.runFolder, 'control');
  await until(() => existsSync(control) && readdirSync(control).some((name) => name.endsWith('.json')), veto.ended);
  worker.kill('SIGCONT');
  return await neverTwoEngines(project, Promise.all([worker.ended, veto.ended]));
}

export function describeVeto(where: Where): void {
  describeAt(where, 'the veto', () => {
    proves(
      'policy:later-rule-withdraws',
      'the veto against a FP8 server at work: 200 records go, the lever goes, the gains stay, and every prompt is made once',
      async () => {
        const prompts = 300;
        const { project, judge } = await fp8Project(where, prompts, MANY + 16);
        const worker = await workTo(project, MANY);
        judge.peek();
        expect(doneOf(project)).toBeLessThan(prompts);
        const [ended, said] = await addAtWork(project, worker, project.start(...VETO, '--json'));

        expect(said.code, said.stderr).toBe(0);
        const { data } = said.json();
        expect(data).toMatchObject({
          byWorker: true,
          rule: 'forbid kv-cache: below-16-bit',
          because: BECAUSE,
          by: 'model owner',
        });
        expect(data.records).toBeGreaterThanOrEqual(MANY);
        expect(data.launches).toMatchObject([{ launch: 1, server: 's' }]);
        expect(data.partitions).toMatchObject([{ partition: 'B1', records: data.records, prompts: data.records }]);
        expect(ended.code, ended.stderr).toBe(0);
        expect(recordStates(project)).toEqual({ 'withdrawn/fp8_e4m3': data.records, 'live/bf16': prompts });
        const [change, ...more] = eventsOf(project, 'launch.changed').map(({ facts }) => facts);
        expect(change).toMatchObject({ launch: 2, changes: 'kv-cache-dtype fp8_e4m3 → bf16' });
        expect(change?.['because']).toContain(BECAUSE);
        expect(more).toEqual([]);
        expect(eventsOf(project, 'launch.ended').map(({ facts }) => facts['how'])).toEqual([
          'a rule has changed its kv-cache-dtype',
        ]);
        expectWithoutLever(project);
        await expectMadeAnew(project, judge, prompts);

        // The same file still says fp8, and is not refused: what the rule changed stays.
        const { pid } = { ...project.book().current?.identity };
        const again = await project.aerie('run', 'run.yaml');
        expect(again.code, again.stderr).toBe(0);
        expect(project.book().current?.identity?.pid).toBe(pid);
        // Another forbidden value is a person's proposal.
        project.change({ flags: { ...FP8, 'kv-cache-dtype': 'fp8_e5m2' } });
        const refused = await project.aerie('run', 'run.yaml', '--json');
        expect(refused.code, refused.stderr).toBe(2);
        expect(refused.json().error).toMatchObject({ code: 'policy.forbids', because: `${BECAUSE} (decided by model owner)` });
        expectWithoutLever(project);
        expect(project.book().current?.identity?.pid).toBe(pid);
        judge.finish();
      },
    );

    if (where === 'ssh') return; // What follows is decided here; that a server there is replaced has been seen.

    proves(
      'policy:later-rule-withdraws',
      'the veto when nobody works and the FP8 server still runs: the next run replaces it and makes every prompt anew',
      async () => {
        const prompts = 24;
        const { project, judge } = await fp8Project(where, prompts);
        const made = await project.aerie('run', 'run.yaml');
        expect(made.code, made.stderr).toBe(0);
        judge.finish();
        const engines = enginesOf(project);
        expect(engines).toHaveLength(1);
        const added = await project.aerie(...VETO, '--json');
        expect(added.code, added.stderr).toBe(0);
        expect(added.json().data).toMatchObject({ byWorker: false, records: prompts, prompts, launches: [{ launch: 1 }] });
        expect(enginesOf(project)).toEqual(engines);
        judge.look();

        const anew = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
        expect(anew.code, anew.stderr).toBe(0);
        expect(enginesOf(project)).not.toEqual(engines);
        expect(recordStates(project)).toEqual({ 'withdrawn/fp8_e4m3': prompts, 'live/bf16': prompts });
        expectWithoutLever(project);
        await expectMadeAnew(project, judge, prompts);
      },
    );

    proves(
      'policy:later-rule-withdraws',
      'whoever carries the veto out is killed when the rule is in the ledger: the next run ends well by itself',
      async () => {
        const prompts = 48;
        const { project, judge } = await fp8Project(where, prompts, 16);
        const worker = await workTo(project, 8, { AERIE_CRASH_AT: 'after-rule' });
        // Whoever asked would mend it: that one dies too.
        const env = { ...project.env, AERIE_CRASH_AT: 'before-rule' };
        const veto = startAerie(VETO, { cwd: project.folder, env });
        const [ended, said] = await addAtWork(project, worker, veto);
        expect([ended.signal, said.signal]).toEqual(['SIGKILL', 'SIGKILL']);
        expect(recordStates(project)).toEqual({ 'withdrawn/fp8_e4m3': expect.any(Number) as number });
        expect(project.book().current?.flags).toEqual(FP8);
        judge.look();

        const next = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
        expect(next.code, next.stderr).toBe(0);
        expectWithoutLever(project);
        await expectMadeAnew(project, judge, prompts);
      },
    );

    test('a rule that no flag can keep stops the run with its words; flags of a person that keep it make every prompt', async () => {
      const prompts = 48;
      const { project, judge } = await fp8Project(where, prompts, 16);
      // Half of the pool of FP8.
      project.change({ flags: { ...GAINS, 'kv-cache-dtype': 'bf16' } });
      const worker = await workTo(project, 8);
      const because = 'long conversations are asked next';
      const veto = project.start(...ADD, '--min', 'pool=300000', '--because', because, '--by', 'whoever asks', '--json');
      const [ended, said] = await addAtWork(project, worker, veto);
      expect(said.code, said.stderr).toBe(0);
      const { data } = said.json();
      expect(data).toMatchObject({ byWorker: true, rule: 'min pool: 300000', launches: [{ launch: 1 }] });
      expect(data.unkept).toMatchObject([{ server: 's' }]);
      expect(data.unkept[0].because).toContain('no flag keeps the rule "min pool: 300000"');
      expect(ended.code, ended.stderr).toBe(2);
      const error = ended.json().error;
      expect(error).toMatchObject({ code: 'policy.forbids', because: `${because} (decided by whoever asks)` });
      expect(error?.evidence).toEqual(['min pool: 300000']);
      expect(error?.remedy).toContain(`0 of ${prompts} prompts are done and on disk`);
      judge.look();

      project.change({ flags: FP8 });
      const next = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
      expect(next.code, next.stderr).toBe(0);
      expect(recordStates(project)).toEqual({ 'withdrawn/bf16': data.records, 'live/fp8_e4m3': prompts });
      judge.finish();
    });
  });
}
