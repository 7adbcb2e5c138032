/** New attempts at prompts that have ended: redo, retry, dropped answers, and a run that goes on in another way. */
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { type LookalikeProject, lookalikeProject, promptRow } from '../support/lookalike-project.ts';
import { promptStates, query, readShardLines } from '../support/run-folder.ts';

const PROMPTS = 12;
/** Some answers are longer than the cap of 64, some are not. */
const SPREAD = { answerTokens: { kind: 'uniform', min: 16, max: 120 } };

interface LiveRow {
  readonly id: string;
  readonly place: string;
  readonly tokens: number;
}

function live(project: LookalikeProject): LiveRow[] {
  const sql = `SELECT id, shard || '/' || records.offset AS place, tokens FROM records JOIN prompts ON prompts.ordinal = prompt
    WHERE records.state = 'live' ORDER BY id`;
  return query(project.runFolder, sql) as unknown as LiveRow[];
}

const count = (project: LookalikeProject, sql: string) =>
  Number(query(project.runFolder, `SELECT count(*) AS n FROM ${sql}`)[0]?.['n']);
const truncatedIds = (project: LookalikeProject) => {
  const records = readShardLines(project.runFolder, 'B1');
  return records.filter(({ flags }) => flags.includes('truncated')).map(({ id }) => id);
};
const partitionOf = async (project: LookalikeProject) =>
  (await project.aerie(['status', 'run.yaml', '--json'])).json().data.partitions[0];

/** Each prompt has one live record, and the tokens spent are those of the live ones. */
async function expectWhole(project: LookalikeProject, records: number): Promise<void> {
  const rows = live(project);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(records);
  expect(rows.length).toBe(records);
  const partition = await partitionOf(project);
  expect(partition.done + partition.redoing).toBe(records);
  const unfinished = Number(query(project.runFolder, 'SELECT coalesce(sum(tokens), 0) AS n FROM turns')[0]?.['n']);
  expect(partition.spentTokens).toBe(rows.reduce((sum, { tokens }) => sum + tokens, 0) + unfinished);
}

proves('record:superseded-by-new', 'the prompts that have a finding are asked anew, and the finding is gone', async () => {
  const project = await lookalikeProject({ prompts: PROMPTS, scenario: SPREAD });
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  const [before, cut] = [live(project), truncatedIds(project)];
  expect(cut.length).toBeGreaterThan(0);
  expect(cut.length).toBeLessThan(PROMPTS);

  project.change({ sampling: { 'max-tokens': 200, seed: 7 } });
  const refused = await project.aerie(['run', 'run.yaml', '--redo', 'truncated']);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(/max-tokens: was 64, is now 200[\s\S]*--amend/);
  expect(live(project)).toEqual(before);

  const redone = await project.aerie(['run', 'run.yaml', '--redo', 'truncated', '--amend']);
  expect(redone.code, redone.stderr).toBe(0);
  expect(redone.stderr).toMatch(/amended: sampling\.max-tokens was 64, is now 200/);
  expect(redone.stderr).toContain(`${cut.length} ${cut.length === 1 ? 'record' : 'records'} to be made anew (truncated)`);
  await expectWhole(project, PROMPTS);
  const moved = live(project).filter(({ id, place }) => before.some((row) => row.id === id && row.place !== place));
  expect(moved.map(({ id }) => id).toSorted()).toEqual(cut.toSorted());
  expect(count(project, `records WHERE state = 'superseded'`)).toBe(cut.length);

  const lines = readShardLines(project.runFolder, 'B1');
  const [old, fresh] = [lines.slice(0, PROMPTS), lines.slice(PROMPTS)];
  expect(fresh.map(({ sampling }) => sampling.maxTokens)).toEqual(cut.map(() => 200));
  for (const { id, turns } of fresh) expect(turns[0]?.seed).not.toBe(old.find((record) => record.id === id)?.turns[0]?.seed);
  const checked = (await project.aerie(['check', 'run.yaml', '--json'])).json().data;
  expect(checked.records).toBe(PROMPTS);
  expect(checked.findings.map(({ code }: { code: string }) => code)).not.toContain('truncated');
  const again = await project.aerie(['run', 'run.yaml', '--redo', 'truncated']);
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toMatch(/redo: no finished prompt is meant by truncated/);
});

proves(
  'record:superseded-by-new',
  'kill -9 before and after the commit: one live record each, and the plain command goes on',
  async () => {
    const project = await lookalikeProject({ prompts: PROMPTS, scenario: SPREAD, run: { 'in-flight': 1 } });
    expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
    const before = live(project);
    const ids = before.slice(0, 3).map(({ id }) => id);
    for (const point of ['before-commit', 'after-append', 'after-commit']) {
      const killed = await project.aerie(['run', 'run.yaml', '--redo', ids.join()], { env: { AERIE_CRASH_AT: point } });
      expect(killed.signal, killed.stderr).toBe('SIGKILL');
      await expectWhole(project, PROMPTS);
      if (point !== 'after-commit') expect(live(project)).toEqual(before);
    }
    // A group commit took the first, and on a quick machine others with it; the rest still have their old record.
    const superseded = count(project, `records WHERE state = 'superseded'`);
    expect(superseded).toBeGreaterThan(0);
    expect(count(project, `prompts WHERE replaces = 1`)).toBe(ids.length - superseded);
    const resumed = await project.aerie(['run', 'run.yaml']);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(resumed.stderr).toMatch(/12 records there/);
    await expectWhole(project, PROMPTS);
    expect(promptStates(project.runFolder)).toEqual({ done: PROMPTS });
    const moved = live(project).filter(({ id, place }) => before.some((row) => row.id === id && row.place !== place));
    expect(moved.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(count(project, `records WHERE state = 'superseded'`)).toBe(3);
  },
);

proves('record:superseded-by-new', 'a new attempt that the server refuses leaves the record there was', async () => {
  const project = await lookalikeProject({ prompts: 6 });
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  const before = live(project);
  const refuse = { when: { contains: 'Question 2:' }, do: 'status', status: 400 };
  const added = await fetch(`http://127.0.0.1:${project.port}/_lookalike/fault`, {
    method: 'POST',
    body: JSON.stringify(refuse),
  });
  expect(added.ok).toBe(true);
  const redone = await project.aerie(['run', 'run.yaml', '--redo', before.map(({ id }) => `B1/${id}`).join()]);
  expect(redone.code, redone.stderr).toBe(0);
  expect(redone.stderr).toMatch(/its record stays, the new attempt came to nothing: refused: HTTP 400/);
  await expectWhole(project, 6);
  const same = live(project).filter(({ place }) => before.some((row) => row.place === place));
  expect(same.length).toBe(1);
  expect(promptStates(project.runFolder)).toEqual({ done: 6 });
});

proves('prompt:ended-can-be-asked-again', 'a prompt that was set aside is answered once the reason is gone', async () => {
  const refuse = { when: { contains: 'Question 2:' }, do: 'status', status: 400 };
  const project = await lookalikeProject({ prompts: 5, scenario: { faults: [refuse] } });
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  expect(promptStates(project.runFolder)).toEqual({ done: 4, aside: 1 });
  expect((await project.aerie(['run', 'run.yaml'])).stdout).toMatch(/nothing was left to do/);
  await project.clearFaults();
  const retried = await project.aerie(['run', 'run.yaml', '--retry-failed']);
  expect(retried.code, retried.stderr).toBe(0);
  expect(retried.stderr).toMatch(/B1: asked again, 1 set aside and 0 dropped/);
  expect(promptStates(project.runFolder)).toEqual({ done: 5 });
  expect((await project.aerie(['run', 'run.yaml', '--retry-failed'])).stderr).toMatch(
    /retry: no prompt was set aside or dropped/,
  );
});

proves(
  'prompt:ended-can-be-asked-again',
  'dropped answers are no records, are counted, and are asked again with another cap',
  async () => {
    const partitions = [{ name: 'B1', from: 'prompts.jsonl', truncated: 'drop' }];
    const project = await lookalikeProject({ prompts: PROMPTS, scenario: SPREAD, run: { partitions } });
    const first = await project.aerie(['run', 'run.yaml']);
    expect(first.code, first.stderr).toBe(0);
    const { done = 0, dropped = 0 } = promptStates(project.runFolder);
    expect(done + dropped).toBe(PROMPTS);
    expect(dropped).toBeGreaterThan(0);
    expect(first.stdout).toMatch(new RegExp(`${dropped} prompts? dropped, answers cut at max-tokens`));
    expect(truncatedIds(project)).toEqual([]);
    const partition = await partitionOf(project);
    expect(partition.dropped).toBe(dropped);
    expect(partition.generatedTokens).toBe(partition.spentTokens + 64 * dropped);
    await expectWhole(project, done);

    project.change({ partitions, sampling: { 'max-tokens': 200, seed: 7 } });
    const again = await project.aerie(['run', 'run.yaml', '--amend', '--retry-failed']);
    expect(again.code, again.stderr).toBe(0);
    expect(promptStates(project.runFolder)).toEqual({ done: PROMPTS });
    await expectWhole(project, PROMPTS);
  },
);

proves(
  'resume:amended-is-recorded',
  'another source and another cap are recorded, and each record says how it was made',
  async () => {
    const project = await lookalikeProject({ prompts: 4, scenario: SPREAD });
    expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
    project.writeRows('other.jsonl', [promptRow(0), promptRow(90), promptRow(91)]);
    const own = { name: 'B1', from: 'other.jsonl', sampling: { temperature: 0.1 } };
    project.change({ partitions: [own] });
    const plain = await project.aerie(['run', 'run.yaml']);
    expect(plain.code).toBe(2);
    expect(plain.stderr).toMatch(/partitions\.B1\.sampling: was as the run, is now \{"temperature":0\.1\}/);
    const amended = await project.aerie(['run', 'run.yaml', '--amend']);
    expect(amended.code, amended.stderr).toBe(0);
    expect(promptStates(project.runFolder)).toEqual({ done: 6 });
    const records = readShardLines(project.runFolder, 'B1');
    expect(records.map(({ sampling }) => sampling.temperature)).toEqual([0.7, 0.7, 0.7, 0.7, 0.1, 0.1]);
    const events = query(project.runFolder, `SELECT facts FROM events WHERE kind = 'run.amended'`);
    expect(events.map(({ facts }) => JSON.parse(String(facts)) as object)).toEqual([
      {
        'was.partitions.B1.from': 'prompts.jsonl',
        'now.partitions.B1.from': 'other.jsonl',
        'was.partitions.B1.sampling': 'as the run',
        'now.partitions.B1.sampling': '{"temperature":0.1}',
      },
    ]);
    expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0); // the new way is the run's way now
  },
);

test('what stands after --redo is a finding or an id, else nothing is started', async () => {
  const project = await lookalikeProject({ prompts: 1 });
  const wrong = await project.aerie(['run', 'run.yaml', '--redo', 'trunkated']);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toMatch(/--redo "trunkated" is neither a finding[\s\S]*Did you mean truncated\?/);
  expect(project.journal()).toEqual([]);
});

test('--redo finds what check finds under the same length and benchmarks', async () => {
  const project = await lookalikeProject({ prompts: 4 });
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  project.writeRows('benchmarks.jsonl', [promptRow(2)]);
  const asked = ['--max-length', '20', '--benchmarks', 'benchmarks.jsonl'];
  const checked = (await project.aerie(['check', 'run.yaml', '--json', ...asked])).json().data;
  const count = (code: string) => checked.findings.find((finding: { code: string }) => finding.code === code)?.count ?? 0;
  expect(count('supervision-cut')).toBeGreaterThan(0);
  expect(count('benchmark-overlap')).toBeGreaterThan(0);
  const plain = await project.aerie(['run', 'run.yaml', '--redo', 'supervision-cut,benchmark-overlap']);
  expect(plain.stderr).toMatch(/redo: no finished prompt is meant by supervision-cut, benchmark-overlap/);
  const redone = await project.aerie(['run', 'run.yaml', '--redo', 'benchmark-overlap', ...asked]);
  expect(redone.code, redone.stderr).toBe(0);
  expect(redone.stderr).toContain(`${count('benchmark-overlap')} record`);
  const alone = await project.aerie(['run', 'run.yaml', '--max-length', '20']);
  expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining('--redo is not there')]);
});
