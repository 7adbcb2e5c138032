/** The machine is gone, and the log of its server is not: `server logs` and `diagnose` read what was kept of it. */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { makeProject } from '../support/cli.ts';

/** A real log that ends in an error. */
const LOG = fileURLToPath(new URL('../corpus/logs/003-sglang-watchdog-pyspy-missing.log', import.meta.url));

test('a machine out of reach: its log is read from here, and that is said; one that was never mirrored is not made up', async () => {
  const project = makeProject();
  project.writeRows('prompts.jsonl', [{ prompt: 'Hello.' }]);
  project.writeRun('run.yaml', {
    run: 'r',
    model: 'm',
    servers: [{ engine: 'sglang', name: 's', machine: 'ssh://nobody@127.0.0.1:1' }], // where nothing listens
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
  });
  mkdirSync(project.path('runs/r/logs'), { recursive: true });
  copyFileSync(LOG, project.path('runs/r/logs/s.log'));
  project.write('runs/r/logs/s.mirror.json', '{"launch":2}\n');

  const read = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '2']);
  expect(read.code, read.stderr).toBe(0);
  expect(read.stdout).toBe(readFileSync(LOG, 'utf8'));
  expect(read.stderr).toMatch(/what was kept of it here: .*runs\/r\/logs\/s\.log, \d+ bytes/);

  const tail = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '2', '--lines', '3']);
  const lines = readFileSync(LOG, 'utf8').replace(/\n$/, '').split('\n').slice(-3);
  expect(tail.stdout.replace(/\n$/, '')).toBe(lines.join('\n'));

  const diagnosed = await project.aerie(['diagnose', 'runs/r/logs/s.log', '--json']);
  expect(diagnosed.json().data).toMatchObject({ state: 'crashed', cause: 'scheduler-stuck-watchdog' });

  const none = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '1']);
  expect(none.code, none.stderr).toBe(5);
  expect(none.stderr).toMatch(/machine\.unreachable/);
});
