/** What docker and Slurm print, and what a look at a client and a look inside are together. */
import { describe, expect, test } from 'vitest';
import type { FamilyMember, ProcessLook } from '../machine.ts';
import { parseContainers } from './containers.ts';
import { combineLooks, type Inside, insideOf, memberOf } from './inside.ts';
import { parseSteps } from './steps.ts';

const ID = 'ab'.repeat(32);
const LINE = `${ID}|running|4242|false|0|0001-01-01T00:00:00Z|/big_moore`;
const STAT = 'stat 4242 (python3 -m) S) S 1 4242 4242 0 -1 4194304 1 2 3 4 50 60 0 0 20 0 9 0 777 1000 200';

describe('containers', () => {
  test('one that runs, with its first process where it is seen to be in it', () => {
    expect(parseContainers(LINE)).toMatchObject([
      { id: ID, name: 'container big_moore', state: 'running', pid: 4242, startTicks: undefined },
    ]);
    expect(parseContainers(`${LINE}\n${STAT}\n`)).toMatchObject([{ pid: 4242, startTicks: 777 }]);
    expect(parseContainers(`${LINE}\n${STAT.replace('4242 (', '4243 (')}\n`)).toMatchObject([{ startTicks: undefined }]);
  });

  test.each<[string, Partial<Inside>]>([
    [
      'exited|0|true|137|2026-11-30T20:00:00Z|/a',
      { state: 'ended', exitStatus: 137, isOutOfMemory: true, says: '2026-11-30T20:00:00Z' },
    ],
    ['created|0|false|0|0001-01-01T00:00:00Z|/a', { state: 'made', exitStatus: undefined, says: '' }],
    ['paused|7|false|0|0001-01-01T00:00:00Z|/a', { state: 'running', pid: 7 }],
    ['stopped|0|false|1|2026-11-30 20:00:00 +0000 UTC|a', { state: 'ended', exitStatus: 1, name: 'container a' }],
  ])('%s', (words, expected) => expect(parseContainers(`${ID}|${words}`)).toMatchObject([expected]));

  test.each(['', 'docker: no', '|running|1|false|0||x', `${ID.slice(1)}|running|1|false|0||/x`, STAT])('%j is none', (text) =>
    expect(parseContainers(text)).toEqual([]),
  );
});

test('a job of the launch’s name, its steps inside an allocation, and nobody else’s', () => {
  const text = 'job|12|s-1-a|gpu3|RUNNING|None\njob|13|other|gpu4|RUNNING|None\nstep|12.0|s-1-a|gpu3\nstep|9.4|s-2-b|gpu1\n';
  expect(parseSteps(text, 's-1-a')).toMatchObject([
    { id: '12', node: 'gpu3', state: 'running', name: 'job 12 of Slurm on gpu3' },
  ]);
  expect(parseSteps(text, 's-2-b')).toMatchObject([{ id: '9.4', node: 'gpu1', state: 'running' }]);
  expect(parseSteps('job|12|s|(null)|PENDING|Resources\n', 's')).toMatchObject([
    { state: 'waiting', says: 'PENDING, Resources' },
  ]);
  expect(parseSteps('job|$(x)|s||RUNNING|None\nstep|9;rm|s|gpu1\n', 's')).toEqual([]);
});

const member = (pid: number): FamilyMember => ({
  ...{ pid, startTicks: 5, bootId: 'boot', command: `p${pid}`, parent: 1, presence: 'running', isUninterruptible: false },
});
const look = (main: ProcessLook['main'], family: readonly FamilyMember[], residentBytes: number): ProcessLook => ({
  ...{ main, exitStatus: main === 'gone' ? 137 : undefined, family, residentBytes, readBytes: 1, cpuTicks: 2, compilers: 0 },
});
const [container] = parseContainers(LINE);
const living = { ...(container as Inside) };
const ended: Inside = { ...living, state: 'ended', exitStatus: 9, isOutOfMemory: true, says: '20:00' };

describe('a client and what is inside are one launch', () => {
  test('a client that is gone is no server that is gone', () => {
    const seen = combineLooks({ client: look('gone', [], 0), within: undefined, insides: [living] });
    expect(seen).toMatchObject({
      main: 'running',
      exitStatus: undefined,
      family: [{ command: 'container big_moore', pid: 4242 }],
    });
    expect(insideOf(seen.family[0] ?? member(1))).toEqual({ kind: 'container', id: ID });
    expect(insideOf(member(4242))).toBeUndefined();
  });

  test('where nobody can be asked, that is unknown', () => {
    expect(combineLooks({ client: look('gone', [], 0), within: undefined, insides: undefined })).toMatchObject({
      main: 'unknown',
      exitStatus: undefined,
    });
    expect(combineLooks({ client: look('running', [], 0), within: undefined, insides: undefined }).main).toBe('running');
  });

  test('how the container ended counts, and not how its client did', () => {
    const seen = combineLooks({ client: look('gone', [], 0), within: undefined, insides: [ended] });
    const end = {
      isOutOfMemory: true,
      says: 'container big_moore ended with exit status 9 at 20:00, killed for lack of memory (OOMKilled)',
    };
    expect(seen).toMatchObject({ main: 'gone', exitStatus: 9, family: [], end });
    expect(combineLooks({ client: look('gone', [], 0), within: undefined, insides: [] })).toMatchObject({
      main: 'gone',
      exitStatus: 137,
    });
  });

  test('what is inside is what moves, each process once', () => {
    const [client, first] = [member(1), member(4242)];
    const seen = combineLooks({
      client: look('running', [client], 10),
      within: look('running', [client, first], 99),
      insides: [living],
    });
    expect(seen.residentBytes).toBe(99);
    expect(seen.family.map(({ command }) => command)).toEqual(['p1', 'p4242', 'container big_moore']);
  });

  test('of a step on another node nothing is known here', () => {
    const step = { ...living, kind: 'step' as const, id: '12', pid: 0 };
    expect(combineLooks({ client: look('running', [member(1)], 10), within: undefined, insides: [step] })).toMatchObject({
      main: 'running',
      residentBytes: undefined,
      cpuTicks: undefined,
    });
    expect(memberOf(step).pid).toBe(12);
  });
});
