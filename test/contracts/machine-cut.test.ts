/**
 * The connection is cut while a launch is started over a real sshd: whatever the moment, nothing is started twice, nothing is
 * lost, and the starter knows at once that it does not know.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findLaunched } from '../../src/machine/find-launched.ts';
import { reportPathOf } from '../../src/machine/launch-script.ts';
import { childrenOf, until } from '../support/child-processes.ts';
import { launchOf, presenceOf } from '../support/machine-bench.ts';
import { makeFolder, openSshBench } from '../support/shell-bench.ts';
import { hasSshd, type TestSshd } from '../support/sshd.ts';

type CutBench = Awaited<ReturnType<typeof open>>;

/** A question waits for half a second and then says that there is no machine. */
function open() {
  return openSshBench({}, 500);
}

/** A program that counts how often it was started, and runs on. */
function countingLaunch(bench: CutBench, setup: readonly string[] = []) {
  const count = `${bench.folder}/count`;
  const launch = launchOf(bench, `sh -c 'echo started >>count; while :; do sleep 1; done'`, { setup });
  return { launch, starts: () => (existsSync(count) ? readFileSync(count, 'utf8').split('\n').length - 1 : 0) };
}

/** What the sshd of a bench runs instead of a login: a session whose number stands in `held` has read its script whole, and waits for `go`. */
function holdingLogin(): { readonly sshdConfig: readonly string[]; readonly folder: string } {
  const folder = makeFolder();
  const script = [
    '#!/bin/sh',
    `cd ${folder}`,
    'session=$(($(cat sessions 2>/dev/null || echo 0) + 1)); echo $session >sessions',
    'test "$(cat held 2>/dev/null)" = $session || { cd; exec sh -c "$SSH_ORIGINAL_COMMAND"; }',
    'read -r n l t',
    'head -c $l >body',
    'echo $$ >held-by',
    'until test -e go; do sleep 0.1; done',
    `{ echo $n $l $t; cat body -; } | (cd; sh -c "$SSH_ORIGINAL_COMMAND"; touch ${folder}/over)`,
  ];
  writeFileSync(`${folder}/login`, `${script.join('\n')}\n`, { mode: 0o755 });
  return { folder, sshdConfig: [`ForceCommand ${folder}/login`] };
}

/** The processes of sshd that serve the connections which are open now. */
function sessionsOf({ folder }: TestSshd): number[] {
  const monitors = childrenOf(Number(readFileSync(`${folder}/sshd.pid`, 'utf8')));
  const isSshd = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('sshd');
  return [...monitors, ...monitors.flatMap(childrenOf)].filter(isSshd);
}

function isUnreachable(start: Promise<unknown>) {
  return expect(start).rejects.toMatchObject({ code: 'machine.unreachable' });
}

describe.runIf(process.platform === 'linux' && hasSshd)('a start whose connection is cut', () => {
  test('before it was sent has started nothing', async () => {
    const bench = await open();
    const { launch, starts } = countingLaunch(bench);
    await bench.sshd.cable.cut();
    await isUnreachable(bench.machine.start(launch));
    await bench.sshd.cable.mend();
    expect(await findLaunched(bench.machine, launch)).toEqual({ kind: 'none' });
    expect(starts()).toBe(0);
  });

  test('while it is sent has started nothing, however much came through', async () => {
    const bench = await open();
    // Far more than all buffers on the way take: the machine reads while it is cut.
    const { launch, starts } = countingLaunch(bench, [`: ${'x'.repeat(20_000_000)}`]);
    expect(await bench.machine.home()).toBe(bench.folder); // there is a connection
    const start = bench.machine.start(launch);
    const unreachable = isUnreachable(start);
    const begun = bench.sshd.cable.carried;
    await until(() => bench.sshd.cable.carried - begun > 1_000_000);
    await bench.sshd.cable.cut();
    await unreachable;
    await bench.sshd.cable.mend();
    expect(await findLaunched(bench.machine, launch)).toEqual({ kind: 'none' });
    expect(starts()).toBe(0);
  });

  test('in a setup line goes on, is found, and is one', async () => {
    const bench = await open();
    const { launch, starts } = countingLaunch(bench, ['touch begun; while test ! -e go; do sleep 0.1; done']);
    const unreachable = isUnreachable(bench.machine.start(launch));
    await until(() => existsSync(`${bench.folder}/begun`));
    await bench.sshd.cable.cut();
    await unreachable;
    await bench.sshd.cable.mend();
    expect((await findLaunched(bench.machine, launch)).kind).toBe('setting-up');
    writeFileSync(`${bench.folder}/go`, '');
    await until(async () => (await findLaunched(bench.machine, launch)).kind === 'running');
    await until(() => starts() === 1);
  });

  test('after it was started and before it was told is found, with the identity that it has', async () => {
    const bench = await open();
    const { launch, starts } = countingLaunch(bench, ['touch begun; while test ! -e go; do sleep 0.1; done']);
    const unreachable = isUnreachable(bench.machine.start(launch));
    await until(() => existsSync(`${bench.folder}/begun`));
    bench.sshd.cable.freeze(); // its word does not come through
    writeFileSync(`${bench.folder}/go`, '');
    await until(() => existsSync(reportPathOf(launch.statusPath)) && starts() === 1);
    await bench.sshd.cable.cut();
    await unreachable;
    await bench.sshd.cable.mend();
    const found = await findLaunched(bench.machine, launch);
    expect(found.kind).toBe('running');
    if (found.kind !== 'running') return;
    expect(await presenceOf(bench.machine, launch, found.identity)).toBe('running');
    expect((await bench.machine.findByMarker(launch.marker)).filter(({ pid }) => pid === found.identity.pid)).toHaveLength(1);
    expect(starts()).toBe(1);
  });

  test('while its script waits in a frozen connection: it was looked for meanwhile and another was started, and when it comes it is none', async () => {
    const login = holdingLogin();
    const bench = await openSshBench(login);
    const late = countingLaunch(bench);
    expect(await bench.machine.home()).toBe(bench.folder); // there is a connection
    const sessions = Number(readFileSync(`${login.folder}/sessions`, 'utf8'));
    writeFileSync(`${login.folder}/held`, String(sessions + 2)); // a start asks first whether the machine is there
    const unreachable = isUnreachable(bench.machine.start(late.launch));
    await until(() => existsSync(`${login.folder}/held-by`));
    const frozen = sessionsOf(bench.sshd);
    expect(frozen.length).toBeGreaterThan(0);
    for (const pid of frozen) process.kill(pid, 'SIGSTOP');
    onTestFinished(() => thaw(frozen));
    await unreachable; // ssh notices after 15 s
    expect(await findLaunched(bench.machine, late.launch)).toEqual({ kind: 'none' });
    const next = countingLaunch(bench);
    const identity = await bench.machine.start(next.launch);
    // It comes while what it says can still be written: sshd, once thawed, sees that its client is gone, and nobody would listen.
    writeFileSync(`${login.folder}/go`, '');
    await until(() => existsSync(`${login.folder}/over`));
    thaw(frozen);
    expect(readFileSync(`${login.folder}/body`, 'utf8')).toContain(late.launch.marker); // what came was that start
    await until(() => next.starts() > 0);
    expect(await bench.machine.findByMarker(late.launch.marker)).toEqual([]);
    expect(existsSync(late.launch.logPath)).toBe(false);
    expect(await presenceOf(bench.machine, next.launch, identity)).toBe('running');
    expect(next.starts()).toBe(1);
  });

  test('after it was told leaves it running, and a program that ends meanwhile has its exit status', async () => {
    const bench = await open();
    const launch = launchOf(bench, `sh -c 'while test ! -e end; do sleep 0.1; done; exit 6'`);
    const identity = await bench.machine.start(launch);
    await bench.sshd.cable.cut();
    await expect(bench.machine.look(identity, launch)).rejects.toMatchObject({ code: 'machine.unreachable' });
    writeFileSync(`${bench.folder}/end`, '');
    await until(() => existsSync(launch.statusPath));
    await bench.sshd.cable.mend();
    await until(async () => (await presenceOf(bench.machine, launch, identity)) === 'gone 6');
  });
});

function thaw(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGCONT');
    } catch {
      // it has ended
    }
  }
}
