/** What a preview is for: to see before anything is begun what the rows, the server and the answers are like. */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { lookalikeProject } from '../support/lookalike-project.ts';

test('refused rows are named with the first of each reason, and prompts without an answer with what the server said', async () => {
  const refuse = { when: { contains: 'poison' }, do: 'status', status: 400, body: { error: { message: 'no such thing' } } };
  const project = await lookalikeProject({ prompts: 0, scenario: { faults: [refuse] } });
  const rows = [{ prompt: 'one' }, { question: 'two' }, { question: 'three' }, { prompt: '' }, { prompt: 'poison' }];
  project.writeRows('prompts.jsonl', rows);
  const { code, stdout, stderr } = await project.aerie(['preview', 'run.yaml']);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^refused {3}B1 {2}2 × unknown-shape, the first in row 2: its keys are question {3}\(aerie explain/m);
  expect(stdout).toMatch(/^refused {3}B1 {2}1 × empty-content, the first in row 4: /m);
  expect(stdout).toMatch(/^set aside B1\/\w{26} {2}refused: .*no such thing/m);
  expect(stdout).toMatch(/^exact {5}yes/m);
  const json = (await project.aerie(['preview', 'run.yaml', '--json'])).json().data;
  expect(json).toMatchObject({ rejected: 3, refused: [{ reason: 'unknown-shape', count: 2, line: 2 }, { line: 4 }] });
  expect(json.setAsides).toHaveLength(1);
  expect(existsSync(project.path('runs'))).toBe(false);
});
