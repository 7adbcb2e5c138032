/** What `aerie check` finds in a run, and that what it says to do next is a command that does it. */
import { expect, test } from 'vitest';
import { openDoor } from '../support/cli-door.ts';
import { lookalikeProject, promptRow } from '../support/lookalike-project.ts';
import { readShardLines } from '../support/run-folder.ts';

const door = openDoor();

interface Finding {
  readonly code: string;
  readonly severity: string;
  readonly count: number;
  readonly share: number;
  readonly exampleIds: readonly string[];
  readonly next: string;
}

const PROMPTS = 6;
/** Answers of 16 to 64 tokens else, so that neither the cap nor the lookalike's own words make a loop. */
const RUN = { sampling: { 'max-tokens': 512, seed: 7 } };
const LOOP = 'and so on and so forth '.repeat(20);
const say = (question: number, text: string, times?: number) => ({
  ...{ when: { contains: promptRow(question).prompt }, do: 'say', text },
  ...(times === undefined ? {} : { times }),
});

/** The command in `next`: what stands before the first three spaces. */
const commandIn = (finding: Finding | undefined) => (finding?.next ?? '').split('   ')[0]?.split(' ').slice(1) ?? [];

async function finished(faults: readonly object[]) {
  const project = door.through(await lookalikeProject({ prompts: PROMPTS, scenario: { faults }, run: RUN }));
  const run = await project.aerie(['run', 'run.yaml']);
  expect(run.code, run.stderr).toBe(0);
  const check = async (...flags: string[]) => {
    const checked = await project.aerie(['check', 'run.yaml', '--json', ...flags]);
    const data = checked.json().data as { records: number; findings: Finding[]; drift: object };
    return { code: checked.code, ...data };
  };
  return { project, check };
}

test('a loop and a refusal are found, and the export that check names leaves them out', async () => {
  const { project, check } = await finished([say(1, LOOP), say(2, "I'm sorry, but I can't help with that.")]);
  const { code, records, findings, drift } = await check();
  const idOf = (question: number) =>
    readShardLines(project.runFolder, 'B1').find(({ messages }) => messages[0]?.content === promptRow(question).prompt)?.id ?? '';
  expect({ code, records, drift }).toEqual({ code: 0, records: PROMPTS, drift: { rows: 0, differing: 0 } });
  const common = { severity: 'warning', count: 1, share: 1 / PROMPTS };
  expect(findings).toMatchObject([
    { ...common, code: 'repetition-loop', exampleIds: [`B1/${idOf(1)}`] },
    { ...common, code: 'refusal', exampleIds: [`B1/${idOf(2)}`] },
  ]);

  const command = commandIn(findings[1]);
  expect(command).toEqual(['export', 'run.yaml', '--for', 'specforge', '--without', 'refusal']);
  const exported = await project.aerie([...command, '--to', 'out']);
  expect(exported.code, exported.stderr).toBe(0);
  const rows = project.read('out/tokens/B1.tokens-00000.jsonl').trimEnd().split('\n');
  const ids = rows.map((row) => (JSON.parse(row) as { primary_id: string }).primary_id);
  expect(ids.length).toBe(PROMPTS - 1);
  expect(ids).toContain(idOf(1));
  expect(ids).not.toContain(idOf(2));
  expect(exported.stdout).toContain('refusal');
});

test('prompts of a benchmark, and prompts that fill the length of a trainer, are found where check is told of them', async () => {
  const { project, check } = await finished([]);
  expect((await check()).findings).toEqual([]);
  project.writeRows('bench.jsonl', [{ question: promptRow(3).prompt.toUpperCase() }, { turns: ['Another one.'] }]);
  const overlapping = await check('--benchmarks', 'bench.jsonl');
  expect(overlapping).toMatchObject({ code: 0, findings: [{ code: 'benchmark-overlap', severity: 'warning', count: 1 }] });
  const cut = await check('--max-length', '20'); // every prompt has more bytes than that, and a byte is a token here
  expect(cut).toMatchObject({ code: 1, findings: [{ code: 'supervision-cut', severity: 'error', count: PROMPTS, share: 1 }] });
  const text = await project.aerie(['check', 'run.yaml', '--benchmarks', 'bench.jsonl']);
  expect(text.stdout).toContain('compared with 2 benchmark prompts');
  expect(text.stdout).toContain('ids were not compared with texts: the run folder has no tokenizer');

  project.write('empty.jsonl', '{"other": 1}\n');
  for (const [flag, value] of [
    ['--benchmarks', 'absent.txt'],
    ['--benchmarks', 'empty.jsonl'],
    ['--max-length', '0'],
  ] as const) {
    const refused = await project.aerie(['check', 'run.yaml', flag, value]);
    expect(refused.code, refused.stderr).toBe(2);
    expect(refused.stderr).toContain(value);
  }
});

test('the new attempt that check names takes the finding away', async () => {
  const { project, check } = await finished([say(1, LOOP, 1)]);
  const [found] = (await check()).findings;
  expect(found).toMatchObject({ code: 'repetition-loop', count: 1 });
  const command = commandIn(found);
  expect(command).toEqual(['run', 'run.yaml', '--redo', 'repetition-loop']);
  const again = await project.aerie(command);
  expect(again.code, again.stderr).toBe(0);
  expect(await check()).toMatchObject({ code: 0, records: PROMPTS, findings: [] });
});
