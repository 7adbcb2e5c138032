/** The quickstart's shape on the real default model: preview, a small run, check, and ids that decode to their texts. */
import { expect, test } from 'vitest';
import { makeProject, type Project } from '../support/cli.ts';
import { lacksRealModel, NEEDS_REAL_MODEL, realModel } from '../support/real-model.ts';
import { readShardLines } from '../support/run-folder.ts';

const QUESTIONS = [
  'What is a bird?',
  'Name a river.',
  'Say hello in French.',
  'What is 2 + 2?',
  'Why is the sky blue?',
  'Who was Ada Lovelace?',
];

function smallProject(): { project: Project; env: Record<string, string> } {
  const project = makeProject();
  const twoTurns = QUESTIONS.map((content) => ({
    messages: [
      { role: 'user', content },
      { role: 'user', content: 'Shorter.' },
    ].slice(0, 1),
  }));
  const withSystem = QUESTIONS.map((content) => ({
    messages: [
      { role: 'system', content: 'Answer in one word.' },
      { role: 'user', content },
    ],
  }));
  project.writeRows('plain.jsonl', twoTurns);
  project.writeRows('system.jsonl', withSystem);
  project.writeRun('run.yaml', {
    run: 'small',
    model: 'default',
    servers: [{ engine: 'embedded', flags: { sequences: 4, context: 512 } }],
    sampling: { temperature: 0.7, 'max-tokens': 16, seed: 3 },
    partitions: [
      { name: 'plain', from: 'plain.jsonl' },
      { name: 'system', from: 'system.jsonl' },
    ],
  });
  return { project, env: { AERIE_MODEL: realModel() } };
}

test.skipIf(lacksRealModel)(`twelve prompts become exact records that check accepts ${NEEDS_REAL_MODEL}`, async () => {
  const { project, env } = smallProject();
  const run = await project.aerie(['run', 'run.yaml'], { env });
  expect(run.code, run.stderr).toBe(0);
  expect(run.stdout).toMatch(/made +12 records, [\d,]+ tokens/);

  const checked = await project.aerie(['check', 'run.yaml', '--json'], { env });
  expect(checked.code, checked.stdout).toBe(0);
  const { findings, ...counts } = checked.json().data as { findings: { code: string }[] };
  expect(counts).toMatchObject({ records: 12, drift: { rows: 12 } });
  // What the run folder's template and tokenizer make of the messages is what the engine used, to the id.
  expect(findings.map(({ code }) => code)).not.toContain('prompt-drift');
  const records = ['plain', 'system'].flatMap((name) => readShardLines(project.path('runs/small'), name));
  expect(records.every(({ exact, provenance }) => exact && provenance.model === 'SmolLM2-135M-Instruct')).toBe(true);
  expect(records.filter(({ turns }) => /[a-z]{2,}/i.test(turns[0]?.text ?? '')).length).toBeGreaterThan(8);
});

test.skipIf(lacksRealModel)(`preview shows at most ten records, says exact, and keeps nothing ${NEEDS_REAL_MODEL}`, async () => {
  const { project, env } = smallProject();
  const preview = await project.aerie(['preview', 'run.yaml'], { env });
  expect(preview.code, preview.stderr).toBe(0);
  expect(preview.stdout.match(/^── /gm)?.length).toBe(10);
  expect(preview.stdout).toMatch(/^exact +yes: token ids of prompt and answer come from the engine$/m);
  expect(preview.stdout).toMatch(/^user +What is a bird\?\nanswer +\S/m);
  expect(preview.stderr).not.toMatch(/resumes/);
  const status = await project.aerie(['status', 'run.yaml'], { env });
  expect(status.stderr).toMatch(/run\.absent/);
});
