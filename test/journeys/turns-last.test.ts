/** `turns: last`: the answers that the source has stay as they are, and only the last user turn is answered. */
import { expect, test } from 'vitest';
import { lookalikeProject } from '../support/lookalike-project.ts';
import { promptStates, readShardLines } from '../support/run-folder.ts';

test('only the last turn is asked, with the source’s own answers before it, and the mode is held', async () => {
  const project = await lookalikeProject({
    prompts: 0,
    run: { partitions: [{ name: 'B1', from: 'prompts.jsonl', turns: 'last' }] },
  });
  const [first, given, second] = ['What is two and two?', 'Four, as ever.', 'And three and three?'];
  const said = [
    { role: 'user', content: first },
    { role: 'assistant', content: given },
    { role: 'user', content: second },
  ];
  project.writeRows('prompts.jsonl', [{ messages: [...said, { role: 'assistant', content: 'written anew' }] }]);
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  expect(promptStates(project.runFolder)).toEqual({ done: 1 });
  const asked = project.journal().filter((line) => line.event === 'received');
  expect(asked.length).toBe(1);
  expect(JSON.stringify(asked[0])).toContain(given);
  expect(JSON.stringify(asked[0])).not.toContain('written anew');
  const [record] = readShardLines(project.runFolder, 'B1');
  expect(record?.messages.map(({ role, content }) => ({ role, content }))).toEqual(said);
  expect(record?.turns.length).toBe(1);

  project.change({ partitions: [{ name: 'B1', from: 'prompts.jsonl' }] });
  const other = await project.aerie(['run', 'run.yaml']);
  expect(other.code).toBe(2);
  expect(other.stderr).toMatch(/partitions\.B1\.turns: was last, is now all/);
});
