/** Coming back to a run: what may change, what is refused with nothing changed, and what a budget leaves for later. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { until } from '../support/child-processes.ts';
import { expectEachOnce, freePort, type LookalikeProject, lookalikeProject, promptRow } from '../support/lookalike-project.ts';
import { dumpLedger, filesBelow, query, readShardLines } from '../support/run-folder.ts';
import { spawnProgram } from '../support/spawn-program.ts';

const SAMPLING = { 'max-tokens': 64, seed: 7 };

async function finished(prompts: number, more: Partial<Parameters<typeof lookalikeProject>[0]> = {}): Promise<LookalikeProject> {
  const project = await lookalikeProject({ prompts, ...more });
  const first = await project.aerie(['run', 'run.yaml']);
  expect(first.code, first.stderr).toBe(0);
  return project;
}

/** What must be the same before and after a refusal. */
const stateOf = (project: LookalikeProject) => ({
  ledger: dumpLedger(project.runFolder),
  shards: JSON.stringify(readShardLines(project.runFolder, 'B1')),
  runFile: project.read('runs/r/run.yaml'),
  resolved: project.read('runs/r/run.resolved.json'),
  prompts: project.read('runs/r/prompts/B1.jsonl'),
  asked: project.journal().length,
});

proves(
  'resume:refuses-data-change',
  'temperature, cap, seed, model and sources are held, each with the difference shown',
  async () => {
    const project = await finished(3);
    const before = stateOf(project);
    const changes = [
      [{ sampling: { ...SAMPLING, temperature: 0.2 } }, /sampling\.temperature: was 0\.7, is now 0\.2/],
      [{ sampling: { 'max-tokens': 65, seed: 7 } }, /sampling\.max-tokens: was 64, is now 65/],
      [{ sampling: { ...SAMPLING, seed: 8 } }, /sampling\.seed: was 7, is now 8/],
      [{ model: 'another' }, /model: was lookalike, is now another/],
      [{ partitions: [{ name: 'B1', from: 'other.jsonl' }] }, /partitions\.B1\.from: was prompts\.jsonl, is now other\.jsonl/],
      [
        { partitions: [{ name: 'B1', from: 'prompts.jsonl', budget: 10 }] },
        /partitions\.B1\.budget .*was no budget, is now 10 tokens/,
      ],
    ] as const;
    for (const [over, shown] of changes) {
      project.change(over);
      const result = await project.aerie(['run', 'run.yaml']);
      expect(result.code, result.stderr).toBe(2);
      expect(result.stderr).toMatch(/run-file\.differs/);
      expect(result.stderr).toMatch(shown);
      expect(result.stderr).toMatch(/Put these back as they were.*Nothing was changed/);
      expect(stateOf(project)).toEqual(before);
    }
  },
);

proves(
  'resume:refuses-data-change',
  'a source with other content is refused, one that is gone after it was read is not needed',
  async () => {
    const project = await finished(3);
    const before = stateOf(project);
    project.writeRows('prompts.jsonl', [promptRow(0), promptRow(1), promptRow(9)]);
    const changed = await project.aerie(['run', 'run.yaml']);
    expect(changed.code, changed.stderr).toBe(2);
    expect(changed.stderr).toMatch(/source\.changed/);
    expect(changed.stderr).toMatch(/has other content/);
    expect(stateOf(project)).toEqual(before);

    rmSync(project.path('prompts.jsonl'));
    expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  },
);

proves('resume:same-command', 'a finished run starts no server, and a run folder does where a run file does', async () => {
  const project = await finished(3);
  const asked = project.journal().length;
  for (const target of ['run.yaml', `${project.runFolder}/`]) {
    const again = await project.aerie(['run', target]);
    expect(again.code, again.stderr).toBe(0);
    expect(again.stdout).toMatch(/nothing was left to do/);
    expect(again.stderr).toMatch(/run r resumes in .*: 3 records there/);
    expect(again.stderr).not.toMatch(/vllm-0/);
    const status = (await project.aerie(['status', target, '--json'])).json().data;
    expect(status).toMatchObject({ run: 'r', isFinished: true, partitions: [{ done: 3, enrolled: 3 }] });
  }
  expect(project.journal().length).toBe(asked);
  expectEachOnce(project, 3);
});

proves(
  'resume:harmless-changes',
  'another port, a new partition, a higher limit and other in-flight are taken over',
  async () => {
    const project = await finished(6, { run: { partitions: [{ name: 'B1', from: 'prompts.jsonl', limit: 2 }] } });
    expectEachOnce(project, 2);
    const other = await spawnProgram({
      program: 'lookalike-engine.js',
      args: ['--journal', project.path('journal.jsonl')],
      port: await freePort(),
    });
    try {
      project.writeRows('more.jsonl', [promptRow(0), { prompt: 'Only here.' }]);
      project.change({
        servers: [{ engine: 'vllm', attach: other.baseUrl }],
        'in-flight': 2,
        partitions: [
          { name: 'B1', from: 'prompts.jsonl', limit: 5 },
          { name: 'B2', from: 'more.jsonl' },
        ],
      });
      const result = await project.aerie(['run', 'run.yaml', '--json']);
      expect(result.code, result.stdout).toBe(0);
      expect(result.json().data.partitions).toMatchObject([
        { name: 'B1', done: 5, limit: 5 },
        { name: 'B2', done: 2 },
      ]);
      expect(result.json().data.session).toMatchObject({ records: 5 });
      expect(result.json().data.session.mostInFlight).toBeLessThanOrEqual(2);
      // The same prompt in two partitions is a record in each.
      const ids = ['B1', 'B2'].map((name) => readShardLines(project.runFolder, name).map(({ id }) => id));
      expect(ids.map((list) => new Set(list).size)).toEqual([5, 2]);
      expect(query(project.runFolder, 'SELECT count(*) AS n FROM launches')[0]?.['n']).toBe(2);
    } finally {
      await other.stop();
    }
  },
);

proves(
  'budget:stops-admitting',
  'a budget stops admission, the report shows spent and budget, and a higher one goes on',
  async () => {
    const project = await finished(40, {
      scenario: { answerTokens: { kind: 'fixed', tokens: 20 } },
      run: { partitions: [{ name: 'B1', from: 'prompts.jsonl', budget: 200 }] },
    });
    const status = (await project.aerie(['status', 'run.yaml', '--json'])).json().data;
    const [partition] = status.partitions;
    expect(status.isFinished).toBe(true);
    expect(partition.budget).toBe(200);
    // Each unanswered turn is expected to cost its cap of 64, so that what comes past the budget is less than one cap.
    expect(partition.spentTokens).toBeGreaterThanOrEqual(200);
    expect(partition.spentTokens).toBeLessThan(200 + 64);
    expect(partition.spentTokens).toBe(20 * partition.done);
    expect(partition.waiting + partition.leased).toBe(40 - partition.done);
    expect((await project.aerie(['status', 'run.yaml'])).stdout).toMatch(/B1 +10 +40 .* 200 +200\n/);

    const again = await project.aerie(['run', 'run.yaml']);
    expect(again.stdout).toMatch(/30 prompts not asked, 200 tokens are spent of a budget of 200; raise budget: and run again/);
    expect(again.stderr).toMatch(/B1: budget reached, 200 of 200 tokens/);

    project.change({ partitions: [{ name: 'B1', from: 'prompts.jsonl', budget: '10k' }] });
    const higher = await project.aerie(['run', 'run.yaml']);
    expect(higher.code, higher.stderr).toBe(0);
    expectEachOnce(project, 40);
  },
);

test('a first start that failed pins nothing: with the mistake corrected the same run begins', async () => {
  const project = await lookalikeProject({ prompts: 3 });
  project.change({ model: 'mistyped', sampling: { 'max-tokens': 32 }, partitions: [{ name: 'B1', from: 'absent.jsonl' }] });
  const failed = await project.aerie(['run', 'run.yaml']);
  expect(failed.code, failed.stderr).toBe(2);
  expect(failed.stderr).toMatch(/source\.missing/);

  project.change({});
  const corrected = await project.aerie(['run', 'run.yaml']);
  expect(corrected.code, corrected.stderr).toBe(0);
  expectEachOnce(project, 3);
});

test('a source of which every row was refused is read anew once its columns, or its rows, are mended', async () => {
  const project = await lookalikeProject({ prompts: 0 });
  project.writeRows('prompts.jsonl', [{ question: 'What is two and two?' }, { question: 'And three?' }]);
  const first = await project.aerie(['run', 'run.yaml']);
  expect(first.code, first.stderr).toBe(0);
  expect(first.stdout).toMatch(/B1: no prompt at all, 2 rows refused[\s\S]*next +mend what is named above/);
  expect((await project.aerie(['status', 'run.yaml'])).stdout).toMatch(/next +aerie run /);
  expect((await project.aerie(['export', 'run.yaml', '--for', 'specforge'])).stdout).toContain('no record at all');

  project.change({ partitions: [{ name: 'B1', from: 'prompts.jsonl', columns: { prompt: 'query' } }] });
  expect((await project.aerie(['run', 'run.yaml'])).stdout).toMatch(/B1: no prompt at all, 2 rows refused/);
  project.writeRows('prompts.jsonl', [{ query: 'What is two and two?' }, { question: 'And three?' }]);
  const mended = await project.aerie(['run', 'run.yaml']);
  expect(mended.code, mended.stderr).toBe(0);
  expectEachOnce(project, 1);
  expect((await project.aerie(['status', 'run.yaml'])).stdout).toMatch(/refused +B1 +1 × unknown-shape/);

  project.change({});
  const held = await project.aerie(['run', 'run.yaml']);
  expect(held.code).toBe(2);
  expect(held.stderr).toMatch(/partitions\.B1\.columns: was \{"prompt":"query"\}, is now \{\}/);
});

proves(
  'turn:finished-survives',
  'a conversation killed in its second turn goes on there, and its ids continue those of the first',
  async () => {
    const project = await lookalikeProject({ prompts: 0, scenario: { faults: [{ when: { contains: 'second' }, do: 'hang' }] } });
    project.writeRows('prompts.jsonl', [{ turns: ['first', 'second'] }]);
    const run = project.start(['run', 'run.yaml']);
    await run.line(/ready at/);
    await until(() => query(project.runFolder, 'SELECT count(*) AS n FROM turns')[0]?.['n'] === 1);
    run.kill('SIGKILL');
    await run.ended;
    await project.clearFaults();
    expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
    expectEachOnce(project, 1);
    const [first, second] = readShardLines(project.runFolder, 'B1')[0]?.turns ?? [];
    expect(first?.continues).toBe(0);
    expect(second?.continues).toBe((first?.promptIds.length ?? 0) + (first?.outputIds.length ?? 0));
    expect(second?.usage.prompt).toBe((second?.continues ?? 0) + (second?.promptIds.length ?? 0));
    expect(project.journal().filter((line) => line.event === 'received').length).toBe(3); // the first turn once, the second twice
  },
);

proves('worker:one-per-run', 'a second worker is refused with the first one named, and a reader is not', async () => {
  const project = await lookalikeProject({ prompts: 4, scenario: { faults: [{ when: {}, do: 'hang' }] } });
  const first = project.start(['run', 'run.yaml']);
  await first.line(/ready at/);
  const second = await project.aerie(['run', 'run.yaml']);
  expect(second.code, second.stderr).toBe(3);
  expect(second.stderr).toMatch(/ledger\.held-elsewhere/);
  expect(second.stderr).toContain(`pid ${first.pid}`);
  expect((await project.aerie(['status', 'run.yaml'])).code).toBe(0);

  first.kill('SIGKILL');
  await first.ended;
  await project.clearFaults();
  const third = await project.aerie(['run', 'run.yaml']);
  expect(third.code, third.stderr).toBe(0);
  expect(third.stderr).toMatch(/4 prompts under way when it stopped, to be asked again/);
  expectEachOnce(project, 4);
});

proves('secret:never-written', 'the value of a key is in no file and no output, also where the server refuses it', async () => {
  const secret = 'sk-lookalike-0123456789abcdef';
  const project = await lookalikeProject({ prompts: 3 });
  project.change({ servers: [{ engine: 'vllm', attach: `http://127.0.0.1:${project.port}`, 'api-key': '$LOOKALIKE_KEY' }] });
  const env = { LOOKALIKE_KEY: secret };
  const good = await project.aerie(['run', 'run.yaml'], { env });
  expect(good.code, good.stderr).toBe(0);
  const checked = await project.aerie(['check', 'run.yaml', '--json'], { env });
  const exported = await project.aerie(['export', 'run.yaml', '--for', 'specforge'], { env });
  expect([checked.code, exported.code]).toEqual([0, 0]);

  const said = [good, checked, exported].map(({ stdout, stderr }) => stdout + stderr).join('\n');
  expect(said).not.toContain(secret);
  const files = filesBelow(project.path('runs'));
  expect(files.length).toBeGreaterThan(8);
  writeFileSync(project.path('control.txt'), secret); // the search finds what is there
  const holding = [...files, project.path('control.txt')].filter((path) => readFileSync(path).includes(secret));
  expect(holding).toEqual([project.path('control.txt')]);
  expect(project.read('runs/r/run.yaml')).toContain('$LOOKALIKE_KEY');
});
