/** A server that costs money is ended where the disk of the run folder takes nothing more, and the next start knows of it. A real small disk, real processes. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isAlive } from '../support/child-processes.ts';
import { endsWithTheTest, eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { type LaunchProject, launchProject } from '../support/launch-project.ts';
import { onSmallDisk, whyNoSmallDisk } from '../support/tmpfs.ts';

const MIB = 2 ** 20;
const noDisk = whyNoSmallDisk();
if (noDisk !== undefined && process.env['AERIE_REQUIRE_ALL'] === '1') throw new Error(`full disks must be tested: ${noDisk}`);

/** Returns what the stop said. */
async function stopOnSuchDisk(project: LaunchProject, spoil: () => void): Promise<string> {
  const started = await project.aerie('server', 'start', 'run.yaml');
  expect(started.code, started.stderr).toBe(0);
  const pid = project.book().current?.identity?.pid ?? 0;
  expect(isAlive(pid)).toBe(true);
  spoil();
  const stopped = await project.aerie('server', 'stop', 'run.yaml');
  expect(stopped.code, stopped.stderr).toBe(0);
  expect(stopped.stdout).toContain(`pid ${pid} has ended`);
  expect(isAlive(pid)).toBe(false);
  return stopped.stdout;
}

async function expectRuns(project: LaunchProject): Promise<void> {
  const ran = await project.aerie('run', 'run.yaml');
  expect(ran.code, ran.stderr).toBe(0);
  expectAnsweredOnce(project, { B1: 4 });
}

describe.skipIf(noDisk !== undefined)('aerie server stop ends the server', () => {
  test('on a full disk, and a mark has the next start take it for a stop and for no death', async () => {
    const project = await launchProject({ prompts: 4 });
    endsWithTheTest(project); // its book goes with the disk
    await onSmallDisk(project.runFolder, 4 * MIB, async (disk) => {
      const said = await stopOnSuchDisk(project, () =>
        expect(() => writeFileSync(join(project.runFolder, 'ballast'), Buffer.alloc(8 * MIB))).toThrow('ENOSPC'),
      );
      expect(said).toMatch(/full.* the history of the run has no line of this stop\. The next start knows of it all the same/);
      expect(readdirSync(join(project.runFolder, 'servers')).filter((name) => name.endsWith('.stopped'))).toHaveLength(1);
      disk.resize(64 * MIB);
      const again = await project.aerie('server', 'stop', 'run.yaml');
      expect(again.code, again.stderr).toBe(0);
      expect(again.stdout).toContain('was not running');
      await expectRuns(project);
      expect(project.book()).toMatchObject({ launches: 2, tries: [], isPending: false });
      for (const kind of ['verdict.given', 'launch.changed']) expect(eventsOf(project, kind)).toEqual([]);
    });
  });

  test('on a disk that was made read-only, which takes no mark, and says what the next start does', async () => {
    const project = await launchProject({ prompts: 4 });
    endsWithTheTest(project); // its book goes with the disk
    project.change({ server: { log: project.path('s.log') } }); // one that is open for writing cannot be made read-only
    await onSmallDisk(project.runFolder, 64 * MIB, async (disk) => {
      const said = await stopOnSuchDisk(project, () => disk.makeReadOnly());
      expect(said).toContain('cannot be written. So the history of the run has no line of this stop.');
      expect(said).toContain('The next start takes it for a death, which counts as a try.');
      disk.makeWritable();
      await expectRuns(project);
      const [death] = project.book().tries;
      expect(death).toMatchObject({ verdict: { cause: 'none', state: 'stopped' } });
      expect(eventsOf(project, 'launch.changed').map(({ facts }) => facts['changes'])).toEqual(['the same flags']);
    });
  });
});
