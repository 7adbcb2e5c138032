/**
 * A run folder that something has happened to (files replaced by folders, cut, swapped, removed) ends every command in an answer
 * or an error of the table, never in a stack trace. Each case is a fresh copy of one finished run.
 * They go through the door of cli-door.ts.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { proves } from '../proves.ts';
import { openDoor } from '../support/cli-door.ts';
import { expectEndsWell } from '../support/ends-well.ts';
import { type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';

type Harm = (folder: string, other: string) => void;

const gone =
  (name: string): Harm =>
  (folder) =>
    rmSync(join(folder, name), { recursive: true });
const text =
  (name: string, content: string): Harm =>
  (folder) => {
    rmSync(join(folder, name), { recursive: true, force: true });
    writeFileSync(join(folder, name), content);
  };
const asFolder =
  (name: string): Harm =>
  (folder) => {
    rmSync(join(folder, name), { recursive: true, force: true });
    mkdirSync(join(folder, name), { recursive: true });
  };
const cut =
  (name: string): Harm =>
  (folder) => {
    const path = join(folder, name);
    truncateSync(path, Math.floor(readFileSync(path).length / 2));
  };
const foreign =
  (name: string): Harm =>
  (folder, other) =>
    cpSync(join(other, name), join(folder, name));
const loop =
  (name: string): Harm =>
  (folder) => {
    rmSync(join(folder, name), { recursive: true, force: true });
    symlinkSync(name.split('/').at(-1) ?? '', join(folder, name));
  };

const SHARD = 'records/B1/00000.jsonl';

const HARMS: Readonly<Record<string, Harm>> = {
  'run.yaml gone': gone('run.yaml'),
  'run.yaml a folder': asFolder('run.yaml'),
  'run.yaml is none': text('run.yaml', '\0\0'),
  'run.resolved.json is none': text('run.resolved.json', '[[['),
  'run.resolved.json null': text('run.resolved.json', 'null'),
  'run.resolved.json a folder': asFolder('run.resolved.json'),
  'ledger gone': gone('ledger.sqlite'),
  'ledger a folder': asFolder('ledger.sqlite'),
  'ledger empty': text('ledger.sqlite', ''),
  'ledger text': text('ledger.sqlite', 'hello '.repeat(1000)),
  'ledger cut': cut('ledger.sqlite'),
  'ledger of another run': foreign('ledger.sqlite'),
  'ledger a link to itself': loop('ledger.sqlite'),
  'lock a folder': asFolder('lock.sqlite'),
  'lock text': text('lock.sqlite', 'hello '.repeat(1000)),
  'lock.json a folder': asFolder('lock.json'),
  'lock.json.new a folder': asFolder('lock.json.new'),
  'shard gone': gone(SHARD),
  'shard a folder': asFolder(SHARD),
  'shard empty': text(SHARD, ''),
  'shard cut': cut(SHARD),
  'shard other bytes': (folder) =>
    writeFileSync(join(folder, SHARD), Buffer.alloc(readFileSync(join(folder, SHARD)).length, '{')),
  'shard of another run': foreign(SHARD),
  'shards of a partition a file': text('records/B1', 'x'),
  'records gone': gone('records'),
  'records a file': text('records', 'x'),
  'prompts gone': gone('prompts/B1.jsonl'),
  'prompts a folder': asFolder('prompts/B1.jsonl'),
  'prompts cut': cut('prompts/B1.jsonl'),
  'prompts folder a file': text('prompts', 'x'),
  'rejected gone': gone('rejected/B1.ndjson'),
  'rejected a folder': asFolder('rejected/B1.ndjson'),
  'rejected is none': text('rejected/B1.ndjson', '\0'.repeat(400)),
  'rejected folder a file': text('rejected', 'x'),
  'logs a file': text('logs', 'x'),
  'log a folder': asFolder('logs/aerie.log'),
  'tokenizer a file': text('tokenizer', 'x'),
  'tokenizer is none': (folder) => {
    asFolder('tokenizer')(folder, folder);
    for (const name of ['tokenizer.json', 'tokenizer_config.json'])
      writeFileSync(join(folder, 'tokenizer', name), '{"model": 3}');
  },
  'export a file': text('export', 'x'),
  'export of something else': (folder) => {
    asFolder('export/specforge')(folder, folder);
    writeFileSync(join(folder, 'export/specforge/mine.txt'), 'x');
  },
};

const door = openDoor();

/** Done prompts and a refused row. */
async function finished(prompts: number): Promise<LookalikeProject> {
  const project = door.through(await lookalikeProject({ prompts }));
  writeFileSync(project.path('prompts.jsonl'), `${readFileSync(project.path('prompts.jsonl'), 'utf8')}not JSON\n`);
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  return project;
}

for (const command of ['status', 'check', 'export', 'run']) {
  proves('error:never-a-stack', `${command} on a run folder that something happened to`, () => tryAll(command), 900_000);
}

async function tryAll(command: string): Promise<void> {
  const project = await finished(6);
  const other = await finished(3);
  const whole = project.path('whole');
  cpSync(project.runFolder, whole, { recursive: true });
  for (const [name, harm] of Object.entries(HARMS)) {
    rmSync(project.runFolder, { recursive: true, force: true });
    cpSync(whole, project.runFolder, { recursive: true });
    harm(project.runFolder, other.runFolder);
    const more = command === 'export' ? ['--for', 'specforge'] : [];
    // More prompts for the run that goes on, so that there is something to do.
    if (command === 'run')
      project.change({
        partitions: [
          { name: 'B1', from: 'prompts.jsonl' },
          { name: 'B2', from: 'prompts.jsonl' },
        ],
      });
    // Both ways to name it: the run file, and for the harms to run files the folder.
    const target = name.startsWith('run.') ? 'runs/r' : 'run.yaml';
    expectEndsWell(await project.aerie([command, target, ...more]), `${command}: ${name}`);
    expect(readdirSync(project.path('runs'))).toEqual(['r']);
  }
}
