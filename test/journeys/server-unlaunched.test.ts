/** `aerie server …` of a run that was never started: what is known is said, no machine is asked, and nothing is left on the disk. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { makeProject } from '../support/cli.ts';

/** Behind an ssh that is not there: whoever asks the machine fails. */
const env = { AERIE_SSH: '/nowhere/ssh' };

function unlaunched() {
  const project = makeProject();
  project.writeRun('run.yaml', {
    ...{ run: 'r', model: 'm', servers: [{ engine: 'sglang', name: 's', machine: 'gpu-box', flags: { tp: 1 } }] },
    partitions: [{ name: 'B1', from: 'x.jsonl' }],
  });
  return project;
}

test('server stop ends nothing, says why, and makes no run folder', async () => {
  const project = unlaunched();
  const stopped = await project.aerie(['server', 'stop', 'run.yaml'], { env });
  expect(stopped.code, stopped.stderr).toBe(0);
  expect(stopped.stdout).toBe('s  was not launched yet: there is nothing to end\n');
  const { data } = (await project.aerie(['server', 'stop', 'run.yaml', '--json'], { env })).json();
  expect(data).toMatchObject({ isClean: true, servers: [{ name: 's', launches: 0, pid: 0 }] });
  expect(readdirSync(project.folder)).toEqual(['run.yaml']);
});

test('server logs and server verify say so too', async () => {
  const project = unlaunched();
  const logs = await project.aerie(['server', 'logs', 'run.yaml'], { env });
  expect([logs.code, logs.stdout]).toEqual([2, '']);
  expect(logs.stderr).toMatch(/log\.unreadable\n +s was not launched yet, so it has no log\./);
  const verified = await project.aerie(['server', 'verify', 'run.yaml'], { env });
  expect([verified.code, verified.stdout]).toEqual([1, 's  was not launched yet:  aerie server start run.yaml\n']);
  expect(readdirSync(project.folder)).toEqual(['run.yaml']);
});
