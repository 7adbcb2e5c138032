/** Real programs are stopped, and nobody else; who stays is named. Linux only: without /proc no process is known for sure. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isAlive, until } from '../../test/support/child-processes.ts';
import { launchOf, type MachineBench, readLog } from '../../test/support/machine-bench.ts';
import { nodeHost, systemClock } from '../host/node-host.ts';
import { localMachine } from '../machine/local/local-machine.ts';
import type { DetachedStart, ProcessIdentity } from '../machine/machine.ts';
import { type StopReport, type StopRequest, stopLaunch } from './stop-launch.ts';

function openBench(): MachineBench {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-stop-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { machine: localMachine(nodeHost()), folder };
}

const STARTER = fileURLToPath(new URL('../../test/support/start-launch.mjs', import.meta.url));

async function startSaying(bench: MachineBench, command: string, word: string): Promise<[DetachedStart, ProcessIdentity]> {
  const launch = launchOf(bench, command);
  const identity = await bench.machine.start(launch);
  await until(async () => (await readLog(bench.machine, launch)).includes(word));
  return [launch, identity];
}

/** prctl(PR_SET_CHILD_SUBREAPER, 1): orphans of the launch become children of this one, as of the first process of a container. */
const ADOPTS = `syscall(${process.arch === 'arm64' ? 167 : 157}, 36, 1, 0, 0, 0); system(@ARGV);`;
/** What pid 1 does in most places, and does not in a container whose first process is a program: it takes note of each that ends. */
const REAPS = `${ADOPTS} while (1) { wait == -1 and sleep 1 }`;
const REAPS_NOBODY = `${ADOPTS} sleep 1000`;

/** As `startSaying`; whoever ends is reaped, or not, whatever the first process of this place does. */
async function startBelow(parentProgram: string, bench: MachineBench, command: string, word: string) {
  const { machine, folder } = bench;
  const launch = launchOf(bench, command);
  const starter = [process.execPath, STARTER, JSON.stringify(launch), 'end'];
  const parent = spawn('perl', ['-e', parentProgram, ...starter], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [said] = (await once(parent.stdout, 'data')) as [Buffer];
  const identity = JSON.parse(said.toString()) as ProcessIdentity;
  await until(async () => (await readLog(machine, launch)).includes(word));
  return { started: [launch, identity] as [DetachedStart, ProcessIdentity], parent };
}

function stop(bench: MachineBench, [launch, identity]: [DetachedStart, ProcessIdentity], more: Partial<StopRequest> = {}) {
  const { marker, statusPath } = launch;
  const graces = { termGraceMs: 30_000, killGraceMs: 30_000 };
  return stopLaunch({ machine: bench.machine, launch: { identity, marker, statusPath }, clock: systemClock, ...graces, ...more });
}

const signals = ({ steps }: StopReport) =>
  steps.flatMap((step) => (step.kind === 'signalled' ? [`${step.signal} ${step.command.split(' ')[0]} ${step.result}`] : []));

describe.runIf(process.platform === 'linux')('stopping a launch', () => {
  test('one that ends on SIGTERM has its exit status, and nothing else was needed', async () => {
    const bench = openBench();
    const started = await startSaying(bench, `perl -e '$SIG{TERM} = sub { exit 9 }; $| = 1; print "up"; sleep 1 while 1'`, 'up');
    const report = await stop(bench, started);
    expect(signals(report)).toEqual(['SIGTERM perl sent']);
    expect(report).toMatchObject({ isStopped: true, exitStatus: 9, left: [] });
  });

  test('requests are aborted first, and a dead engine that cannot is stopped all the same', async () => {
    const bench = openBench();
    const started = await startSaying(bench, `sh -c 'echo up; exec sleep 1000'`, 'up');
    const report = await stop(bench, started, { abortRequests: () => Promise.reject(new Error('nothing listens there')) });
    expect(report.steps[0]).toEqual({ kind: 'aborted-requests', because: 'nothing listens there' });
    expect(report).toMatchObject({ isStopped: true, exitStatus: 143 });
  });

  test('a leftover that ignores SIGTERM is killed with all its children; a bystander lives', async () => {
    const bench = openBench();
    const bystander = spawn('sleep', ['1000']);
    onTestFinished(() => void bystander.kill('SIGKILL'));
    await once(bystander, 'spawn');
    const deaf = `$SIG{TERM} = "IGNORE"; $| = 1; fork; fork; print "up\\n"; sleep 1 while 1`;
    const { started } = await startBelow(REAPS, bench, `perl -e '${deaf}'`, 'up\nup\nup\nup\n');
    const report = await stop(bench, started, { termGraceMs: 300 });
    expect(signals(report).sort()).toEqual([...Array(4).fill('SIGKILL perl sent'), 'SIGTERM perl sent']);
    expect(report).toMatchObject({ isStopped: true, exitStatus: 137, left: [] });
    expect(isAlive(bystander.pid ?? 0)).toBe(true);
  });

  test('children whose main is gone are stopped by marker, by session and by record', async () => {
    const bench = openBench();
    // The program ends at once; one child keeps the marker, one only the session, one neither and is known by its record.
    const stray = `env -i setsid sleep 1003`;
    const { started } = await startBelow(
      REAPS,
      bench,
      `sh -c 'sleep 1001 & env -i sleep 1002 & ${stray} & sleep 1; echo up; exec sleep 2'`,
      'up',
    );
    const [launch, identity] = started;
    const { family } = await bench.machine.look(identity, launch);
    const strayMember = family.find(({ command }) => command === 'sleep 1003');
    expect(strayMember).toBeDefined();
    // The shell of the launch ends when it has written the exit status.
    await until(async () => {
      const look = await bench.machine.look(identity, launch);
      return look.main === 'gone' && !look.family.some(({ command }) => /^\[|aerie-launch/.test(command));
    });
    const left = (await bench.machine.look(identity, launch)).family.map(({ command }) => command);
    expect(left.sort()).toEqual(['sleep 1001', 'sleep 1002']);
    const { marker, statusPath } = launch;
    const report = await stop(bench, started, { launch: { identity, marker, statusPath, family } });
    expect(report).toMatchObject({ isStopped: true, exitStatus: 0, left: [] });
    expect(signals(report).sort()).toEqual([...Array(3).fill('SIGTERM sleep sent')]);
    expect(isAlive(strayMember?.pid ?? 0)).toBe(false);
  });

  test('a zombie is named with its parent, which is not of the launch', async () => {
    const bench = openBench();
    const command = `sh -c 'trap "" TERM; (sleep 1001 &); echo up; while :; do sleep 1; done'`;
    const { started, parent } = await startBelow(REAPS_NOBODY, bench, command, 'up');
    const report = await stop(bench, started, { termGraceMs: 200 });
    expect(report).toMatchObject({ isStopped: true, exitStatus: 137 });
    expect(report.left.map(({ because, presence, parent: by }) => [because, presence, by])).toEqual(
      report.left.map(() => ['zombie', 'zombie', parent.pid]),
    );
    expect(report.left.length).toBeGreaterThanOrEqual(2); // the waiting shell, and the orphan
    for (const { parentCommand } of report.left) expect(parentCommand).toContain(`perl -e ${REAPS_NOBODY}`);
  });

  test('a recorded pid that is somebody else by now is let be', async () => {
    const bench = openBench();
    const started = await startSaying(bench, `sh -c 'echo up; exec sleep 1000'`, 'up');
    const [launch, identity] = started;
    const before = { ...identity, startTicks: identity.startTicks - 1 };
    const report = await stop(bench, [{ ...launch, marker: 'nobody' }, before], { termGraceMs: 0, killGraceMs: 0 });
    expect(signals(report)).toEqual([]);
    expect(isAlive(identity.pid)).toBe(true);
  });

  test('who does not want to wait has SIGKILL sent at once', async () => {
    const bench = openBench();
    const started = await startSaying(bench, `perl -e '$SIG{TERM} = "IGNORE"; $| = 1; print "up\\n"; sleep 1 while 1'`, 'up');
    const report = await stop(bench, started, { termGraceMs: 3_600_000, signal: AbortSignal.abort() });
    expect(report).toMatchObject({ isStopped: true, exitStatus: 137 });
  });
});
