/** Which mount holds a path, and which mounts are a network: lines as real systems print them. */
import { expect, test } from 'vitest';
import { mountOf, networkBehind, parseMountCommand, parseMountInfo } from './file-systems.ts';
import { findMount } from './find-mount.ts';

const LINUX = parseMountInfo(
  [
    '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard',
    '36 27 0:45 / /home rw,relatime shared:20 master:3 - nfs4 filer:/export/home rw,vers=4.2',
    '37 36 0:46 / /home/ann/with\\040space rw - fuse.sshfs ann@box:/data rw,user_id=1000',
    '38 27 0:47 / /mnt/c rw,noatime - 9p C:\\134 rw,aname=drvfs,trans=fd',
    '39 27 0:48 / /scratch rw - xfs /dev/nvme0n1 rw',
    '40 39 0:49 / /scratch rw - cifs //filer/scratch rw',
    '41 27 0:50 / /disk rw - fuseblk /dev/sdb1 rw',
    'a line that is none',
  ].join('\n'),
);

test('the longest mount point above a path holds it, and the later of two at one place', () => {
  const at = (path: string) => mountOf(path, LINUX);
  expect(at('/data/runs/r')).toMatchObject({ at: '/', type: 'ext4' });
  expect(at('/home/ann/runs')).toEqual({ at: '/home', type: 'nfs4', source: 'filer:/export/home' });
  expect(at('/homestead')).toMatchObject({ at: '/' });
  expect(at('/home/ann/with space/runs')).toMatchObject({ type: 'fuse.sshfs' });
  expect(at('/scratch/x')).toMatchObject({ type: 'cifs' });
  expect(mountOf('/x', [])).toBeUndefined();
});

test('networks are told from disks by their type', () => {
  const network = (path: string) => networkBehind(mountOf(path, LINUX) ?? { at: '', type: '', source: '' });
  expect(['/work', '/home', '/home/ann/with space', '/mnt/c', '/scratch', '/disk'].map(network)).toEqual([
    ...[undefined, 'NFS', 'SSH', 'the 9P protocol', 'SMB', undefined],
  ]);
  for (const type of ['tmpfs', 'overlay', 'btrfs', 'zfs', 'apfs', 'fuse.mergerfs', 'constructor'])
    expect(networkBehind({ at: '/x', type, source: '' })).toBeUndefined();
  // A sandbox shows its own root as 9p.
  expect(networkBehind({ at: '/', type: '9p', source: 'none' })).toBeUndefined();
});

test('the lines of macOS', () => {
  const mounts = parseMountCommand(
    '/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)\n//ann@filer/My%20Data on /Volumes/My Data (smbfs, nodev, nosuid, mounted by ann)\n',
  );
  expect(mountOf('/Volumes/My Data/runs', mounts)).toEqual({
    at: '/Volumes/My Data',
    type: 'smbfs',
    source: '//ann@filer/My%20Data',
  });
  expect(mountOf('/Users/ann', mounts)?.type).toBe('apfs');
});

test('this machine: a path that is not there yet has the mount of the folder above it', async () => {
  const here = await findMount(import.meta.dirname);
  expect(here?.type).toMatch(/^\w/);
  expect(await findMount(`${import.meta.dirname}/none/there/yet`)).toEqual(here);
});
