/** What comes through the door is what a process of its own gives; and a command line that leaves something behind is named. */
import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { aerie, makeProject } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { lookalikeProject } from '../support/lookalike-project.ts';

const door = openDoor();

const NOBODY = { engine: 'vllm', attach: 'http://127.0.0.1:1' };

/** Of every kind: help, usage, an answer, a refusal, a run that is given up, JSON; exit codes 0, 2 and 4. */
const COMMAND_LINES = [
  [],
  ['--version'],
  ['statsu'],
  ['run', '--frob', '--json'],
  ['explain', 'oom'],
  ['run', 'none.yaml'],
  ['run', 'nobody.yaml'],
  ['status', 'run.yaml'],
  ['check', 'run.yaml', '--json'],
  ['plan', 'run.yaml'],
  ['server', 'list', 'run.yaml'],
  ['init', 'run.yaml'],
];

test('the same words, the same answer and the same exit code as from a process of its own', async () => {
  const project = await lookalikeProject({ prompts: 2 });
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  const run = JSON.parse(project.read('run.yaml')) as object;
  project.writeRun('nobody.yaml', { ...run, run: 'n', patience: '1s', servers: [NOBODY] });
  for (const args of COMMAND_LINES) {
    const both: object[] = [];
    for (const way of [aerie, door.aerie]) {
      rmSync(project.path('runs/n'), { recursive: true, force: true });
      const { code, signal, stdout, stderr } = await way(args, { cwd: project.folder });
      both.push({ code, signal, stdout, stderr });
    }
    expect(both[1], args.join(' ')).toEqual(both[0]);
  }
});

const HERE = { cwd: import.meta.dirname };
const EXPLAIN = ['explain', 'disk.full'];

/** A process behind the door in which `explain` does more than it says. */
function sabotaged(by: string) {
  const code = `process.on('message', ({ args = [] }) => { if (args[0] === 'explain') ${by}; });`;
  return openDoor({ nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(code)}`], endsWithinMs: 3_000 });
}

const exits = sabotaged('process.exit(7)');
const rejects = sabotaged("setImmediate(() => Promise.reject(new Error('nobody waits for this')))");
const ticks = sabotaged('setInterval(() => undefined, 50)');
const spins = sabotaged('setImmediate(() => { for (;;); })');
const listens = sabotaged("process.on('SIGINT', () => undefined)");

test('an exit and a rejection that nobody handled are the result of the command line that they end, and of no other', async () => {
  expect(await exits.aerie(EXPLAIN, HERE)).toMatchObject({ code: 7, signal: null, stdout: '', stderr: '' });
  const rejected = await rejects.aerie(EXPLAIN, HERE);
  expect([rejected.code, rejected.stderr]).toEqual([1, expect.stringMatching(/nobody waits for this[\s\S]* at /)]);
  for (const after of [exits, rejects]) expect((await after.aerie(['run'], HERE)).stderr).toMatch(/^error {4}usage\.flag/);
});

test('a command line that does not end is named, with what it waits for; so is a listener that it leaves', async () => {
  const named = (because: string) => new RegExp(String.raw`aerie \["explain","disk\.full"\]: ${because}`);
  await Promise.all([
    expect(ticks.aerie(EXPLAIN, HERE)).rejects.toThrow(named('does not end within 3 s; it has answered, .*: .*Timeout')),
    expect(spins.aerie(EXPLAIN, HERE)).rejects.toThrow(named('does not end within 3 s; its event loop stands')),
    expect(listens.aerie(EXPLAIN, HERE)).rejects.toThrow(named('left a listener for SIGINT')),
  ]);
  for (const after of [ticks, spins, listens]) expect((await after.aerie(['run'], HERE)).stderr).toMatch(/^error {4}usage\.flag/);
});

test('of a project the first of each command is a process of its own, and so is what can only be given to one', async () => {
  const opened = sabotaged('process.exit(7)');
  const project = opened.through(makeProject());
  expect((await project.aerie(EXPLAIN)).code).toBe(0);
  expect((await project.aerie(EXPLAIN)).code).toBe(7);
  const nine = { env: { NODE_OPTIONS: '--import=data:text/javascript,process.exit(9)' } };
  await expect(opened.aerie(EXPLAIN, { ...HERE, ...nine })).rejects.toThrow(/a process of its own: NODE_OPTIONS/);
  expect((await project.aerie(EXPLAIN, nine)).code).toBe(9);
  expect((await project.aerie(EXPLAIN, { nodeArgs: ['--import=data:text/javascript,process.exit(8)'] })).code).toBe(8);
});
