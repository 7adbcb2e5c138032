/**
 * The connection is cut while a launch is started over a real sshd: whatever the moment, nothing is started twice, nothing is
 * lost, and the starter knows at once that it does not know.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { findLaunched } from '../../src/machine/find-launched.ts';
import { reportPathOf } from '../../src/machine/launch-script.ts';
import { until } from '../support/child-processes.ts';
import { launchOf, presenceOf } from '../support/machine-bench.ts';
import { openSshBench } from '../support/shell-bench.ts';
import { hasSshd } from '../support/sshd.ts';

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
