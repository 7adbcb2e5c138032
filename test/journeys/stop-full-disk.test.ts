/** A server that costs money is ended where the disk of the run folder takes nothing more. A real small disk, real processes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive } from '../support/child-processes.ts';
import { launchProject } from '../support/launch-project.ts';
import { onSmallDisk, whyNoSmallDisk } from '../support/tmpfs.ts';

const MIB = 2 ** 20;
const noDisk = whyNoSmallDisk();
if (noDisk !== undefined && process.env['AERIE_REQUIRE_ALL'] === '1') throw new Error(`full disks must be tested: ${noDisk}`);

test.skipIf(noDisk !== undefined)('aerie server stop on a full disk ends the server, and says what is not recorded', async () => {
  const project = await launchProject();
  await onSmallDisk(project.runFolder, 4 * MIB, async (disk) => {
    const started = await project.aerie('server', 'start', 'run.yaml');
    expect(started.code, started.stderr).toBe(0);
    const pid = project.book().current?.identity?.pid ?? 0;
    expect(isAlive(pid)).toBe(true);
    expect(() => writeFileSync(join(project.runFolder, 'ballast'), Buffer.alloc(8 * MIB))).toThrow('ENOSPC');

    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stderr).toBe(0);
    expect(stopped.stdout).toContain(`pid ${pid} has ended`);
    expect(stopped.stdout).toContain('disk of the run folder is full');
    expect(isAlive(pid)).toBe(false);

    // With room the folder is as good as before.
    disk.resize(64 * MIB);
    const again = await project.aerie('server', 'stop', 'run.yaml');
    expect(again.code, again.stderr).toBe(0);
    expect(again.stdout).toContain('was not running');
  });
});
