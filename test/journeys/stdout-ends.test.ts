/** Who reads stdout has enough, or the disk below it has no room: the one is the end, the other is told. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../support/child-processes.ts';
import { MAIN, makeProject } from '../support/cli.ts';

const LINES = 400_000;

function projectWithLog() {
  const project = makeProject();
  project.writeRows('prompts.jsonl', [{ prompt: 'Hello.' }]);
  project.writeRun('run.yaml', {
    run: 'r',
    model: 'm',
    servers: [{ engine: 'sglang', name: 's' }],
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
  });
  mkdirSync(project.path('runs/r/logs'), { recursive: true });
  const log = project.write('runs/r/logs/s.log.1', 'a line of the server\n'.repeat(LINES)); // as of a launch before the newest
  return { project, log };
}

test('a log that is followed ends when its reader has enough', async () => {
  const { project, log } = projectWithLog();
  const child = spawn(process.execPath, [MAIN, 'server', 'logs', 'run.yaml', '--launch', '1', '--follow'], {
    cwd: project.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), exited]);
  child.stdout.destroy();
  await until(() => {
    appendFileSync(log, 'one more line\n'); // an end is noticed where there is something to say
    return child.exitCode !== null || child.signalCode !== null;
  });
  expect(await exited).toEqual([0, null]);
  expect(stderr).toBe('');
});

// Linux: a file that takes nothing, as on a disk without room.
test.runIf(existsSync('/dev/full'))('an answer that the disk does not take is no success', async () => {
  const { project } = projectWithLog();
  const full = openSync('/dev/full', 'w');
  for (const args of [['server', 'logs', 'run.yaml', '--launch', '1'], ['--help'], ['explain', 'disk.full']]) {
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: project.folder, stdio: ['ignore', full, 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    expect([args[0], code, stderr]).toEqual([args[0], 5, expect.stringContaining('could not be written to stdout (ENOSPC)')]);
    expect(stderr.match(/error /g)).toHaveLength(1);
  }
});
