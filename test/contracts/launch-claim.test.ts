/**
 * Scripts of one launch and looks for it, at the same time and in any order, in real shells: never two programs, and none at all once a
 * look has said that there is none. What is left behind by a claim whose maker was killed stands in nobody's way.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AerieError } from '../../src/base/errors.ts';
import { claimLaunch } from '../../src/machine/claim-launch.ts';
import { findLaunched, type Launched } from '../../src/machine/find-launched.ts';
import { claimPathOf, launchShellArgs, renderLaunchScript } from '../../src/machine/launch-script.ts';
import type { DetachedStart, Machine } from '../../src/machine/machine.ts';
import { until } from '../support/child-processes.ts';
import { endAll, launchOf, type MachineBench } from '../support/machine-bench.ts';
import { runs } from '../support/property-runs.ts';
import { openShellBench } from '../support/shell-bench.ts';
import { makeBarePath, shellsHere } from '../support/shells.ts';
import { onSmallDisk, whyNoSmallDisk } from '../support/tmpfs.ts';

/** Each acts so many milliseconds after the beginning; a script takes about ten to its program, a look thirty. */
const plays = fc.array(fc.record({ who: fc.constantFrom('script', 'look'), afterMs: fc.integer({ min: 0, max: 40 }) }), {
  minLength: 2,
  maxLength: 6,
});

/** The launch script as whoever brings it: nobody hears what it says. */
async function runScript(launch: DetachedStart, [file = 'sh', ...words]: readonly string[]): Promise<void> {
  const child = spawn(file, [...words, ...launchShellArgs(launch.marker)], {
    detached: true,
    env: { ...process.env, AERIE_LAUNCH: launch.marker },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.stdin.on('error', () => undefined).end(renderLaunchScript(launch));
  await once(child, 'exit');
}

async function after<T>(ms: number, act: () => Promise<T>): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  return await act();
}

function startsOf(path: string): number {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

describe.runIf(process.platform === 'linux')('a launch', () => {
  test.each(shellsHere())('is one, or none for good, whoever comes first: %s', async (_, shell) => {
    const bench = await openShellBench(() => ({ shell }));
    let nth = 0;
    await fc.assert(
      fc.asyncProperty(plays, async (play) => {
        const count = `${bench.folder}/count-${nth++}`;
        const launch = launchOf(bench, `echo started >>${count}`);
        const acts = play.map(({ who, afterMs }) =>
          after(afterMs, async (): Promise<Launched | undefined> => {
            if (who === 'look') return await findLaunched(bench.machine, launch);
            await runScript(launch, shell);
            return undefined;
          }),
        );
        const looks = (await Promise.all(acts)).filter((look) => look !== undefined);
        await until(async () => (await bench.machine.findByMarker(launch.marker)).length === 0);
        const isNone = looks.some(({ kind }) => kind === 'none');
        const starts = startsOf(count);
        expect(starts).toBeLessThanOrEqual(1);
        if (isNone) expect(starts).toBe(0);
        else if (play.some(({ who }) => who === 'script')) expect(starts).toBe(1);
        // Whoever asks after all of this hears the same.
        expect((await findLaunched(bench.machine, launch)).kind).toBe(starts === 1 ? 'ended' : 'none');
      }),
      { numRuns: runs(12) },
    );
  });

  test('that is none stays none where nothing but sh and coreutils is, and a look that is asked twice says the same', async () => {
    const bench = await openShellBench((folder) => ({ shell: ['/bin/sh'], env: { PATH: makeBarePath(folder), HOME: folder } }));
    const launch = launchOf(bench, 'true');
    expect(await claimLaunch(bench.machine, launch)).toBe(true);
    expect(await claimLaunch(bench.machine, launch)).toBe(false); // as where its answer was lost with the connection
    expect(await findLaunched(bench.machine, launch)).toEqual({ kind: 'none' });
    await expect(bench.machine.start(launch)).rejects.toMatchObject({ detail: { facts: { step: 'claimed' } } });
  });

  test('whose claim was made by a shell that was killed in the same moment is none', async () => {
    const bench = await openShellBench(() => ({ shell: ['/bin/sh'] }));
    const launch = launchOf(bench, 'true');
    mkdirSync(claimPathOf(launch));
    expect(await findLaunched(bench.machine, launch)).toEqual({ kind: 'none' });
  });
});

describe.skipIf(whyNoSmallDisk() !== undefined)('on a disk that takes no claim', () => {
  async function onFullDisk(body: (bench: MachineBench, free: () => void) => Promise<void>): Promise<void> {
    const { machine, folder } = await openShellBench(() => ({ shell: ['/bin/sh'] }));
    const disk = `${folder}/disk`;
    await onSmallDisk(disk, 1_000_000, async ({ makeReadOnly, makeWritable }) => {
      makeReadOnly();
      await body({ machine, folder: disk }, makeWritable);
    });
    rmSync(disk, { recursive: true });
  }

  test('nobody says that there is none, and nothing is started; once it takes one, all is as ever', async () => {
    await onFullDisk(async (bench, free) => {
      const { machine } = bench;
      const launch = launchOf(bench, 'sleep 1000', { workFolder: '/' });
      await expect(findLaunched(machine, launch)).rejects.toMatchObject({
        code: 'server.not-launched',
        message: expect.stringMatching(
          /Whether the last start on a shell may still come cannot be settled: .*Read-only file system/,
        ),
      });
      expect(await failureOf(machine, launch)).toBe('server.did-not-start');
      free();
      const identity = await machine.start(launch);
      expect(await findLaunched(machine, launch)).toMatchObject({ kind: 'running', identity: { pid: identity.pid } });
      await endAll(machine, launch.marker);
    });
  });
});

async function failureOf(machine: Machine, launch: DetachedStart): Promise<string> {
  const thrown: unknown = await machine.start(launch).catch((error: unknown) => error);
  return thrown instanceof AerieError ? thrown.code : String(thrown);
}
