/** A source that is larger than the memory a run may take: it is streamed, never held. Linux alone tells the peak of a process. */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { expect, test } from 'vitest';
import { until } from '../support/child-processes.ts';
import { lookalikeProject } from '../support/lookalike-project.ts';
import { query } from '../support/run-folder.ts';

const ROWS = 24_000;
const TEXT = 'all that is known of it '.repeat(700); // 16,800 bytes a row: 400 MB in all
const MIB = 2 ** 20;

function writeLargeSource(path: string): number {
  const file = openSync(path, 'w');
  let bytes = 0;
  for (let at = 0; at < ROWS; at++) bytes += writeSync(file, `{"prompt":"${at}: ${TEXT}"}\n`);
  closeSync(file);
  return bytes;
}

function peakBytes(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

test.skipIf(process.platform !== 'linux')('a source of 400 MB is enrolled whole in less memory than half of it', async () => {
  // Nobody is answered, so that all of it is read ahead.
  const project = await lookalikeProject({ prompts: 0, scenario: { faults: [{ when: {}, do: 'hang' }] } });
  const bytes = writeLargeSource(project.path('prompts.jsonl'));
  expect(bytes).toBeGreaterThan(400 * 10 ** 6);
  const run = project.start(['run', 'run.yaml'], { nodeArgs: ['--max-old-space-size=64'] });
  await run.line(/run r in/);
  await until(() => query(project.runFolder, 'SELECT enrolment FROM partitions')[0]?.['enrolment'] === 'complete', 100_000);
  const peak = peakBytes(run.pid);
  run.kill('SIGTERM');
  const { code, stderr } = await run.ended;
  expect(code, stderr).toBe(143);
  expect(query(project.runFolder, 'SELECT enrolled, rejected FROM partitions')[0]).toEqual({ enrolled: ROWS, rejected: 0 });
  expect(peak, `${Math.round(peak / MIB)} MiB`).toBeLessThan(bytes / 2);
  expect(peak).toBeGreaterThan(30 * MIB); // less than Node alone would mean that it was not seen
});
