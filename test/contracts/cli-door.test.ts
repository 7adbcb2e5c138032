/** What comes through the door is what a process of its own gives; and a command line that leaves something behind is named. */
import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openDoor } from '../support/cli-door.ts';
import { makeProject } from '../support/cli.ts';
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
    for (const way of [project, door.through(project)]) {
      rmSync(project.path('runs/n'), { recursive: true, force: true });
      const { code, signal, stdout, stderr } = await way.aerie(args);
      both.push({ code, signal, stdout, stderr });
    }
    expect(both[1], args.join(' ')).toEqual(both[0]);
  }
});

/** A process behind the door in which `--version` does more than it says. */
function sabotaged(by: string) {
  const code = `process.on('message', ({ args = [] }) => { if (args[0] === '--version') ${by}; });`;
  return openDoor({ nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(code)}`], endsWithinMs: 3_000 });
}

const HERE = { cwd: import.meta.dirname };
const VERSION = ['--version'];

const exits = sabotaged('process.exit(7)');
const rejects = sabotaged("setImmediate(() => Promise.reject(new Error('nobody waits for this')))");
const ticks = sabotaged('setInterval(() => undefined, 50)');
const spins = sabotaged('setImmediate(() => { for (;;); })');
const listens = sabotaged("process.on('SIGINT', () => undefined)");

test('an exit and a rejection that nobody handled are the result of the command line that they end, and of no other', async () => {
  expect(await exits.aerie(VERSION, HERE)).toMatchObject({ code: 7, signal: null, stdout: '', stderr: '' });
  const rejected = await rejects.aerie(VERSION, HERE);
  expect([rejected.code, rejected.stderr]).toEqual([1, expect.stringMatching(/nobody waits for this[\s\S]* at /)]);
  for (const after of [exits, rejects]) expect((await after.aerie(['run'], HERE)).stderr).toMatch(/^error {4}usage\.flag/);
});

test('a command line that does not end is named, with what it waits for; so is a listener that it leaves', async () => {
  const left = /aerie \["--version"\]: does not end within 3 s; it has answered, and what it left keeps it alive: .*Timeout/;
  await Promise.all([
    expect(ticks.aerie(VERSION, HERE)).rejects.toThrow(left),
    expect(spins.aerie(VERSION, HERE)).rejects.toThrow(/aerie \["--version"\]: .*; its event loop stands/),
    expect(listens.aerie(VERSION, HERE)).rejects.toThrow(/aerie \["--version"\]: left a listener for SIGINT/),
  ]);
  for (const after of [ticks, spins, listens]) expect((await after.aerie(['run'], HERE)).stderr).toMatch(/^error {4}usage\.flag/);
});

test('what is read when a process starts is refused', async () => {
  const needs = { ...HERE, env: { NODE_EXTRA_CA_CERTS: '/none' } };
  await expect(door.aerie(VERSION, needs)).rejects.toThrow(/a process of its own: NODE_EXTRA_CA_CERTS/);
  await expect(door.through(makeProject()).aerie(VERSION, { nodeArgs: ['-r', 'x'] })).rejects.toThrow(/own: flags of node/);
});
