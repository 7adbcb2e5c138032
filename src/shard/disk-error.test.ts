/** What is said of a disk is told by the system's code. */
import { expect, test } from 'vitest';
import { explainDiskError } from './disk-error.ts';

const thrown = (code: string) => Object.assign(new Error(`${code}: as the system says it`), { code });

test('a limit of open files is no fault of the disk, and the remedy is about the limit', () => {
  for (const code of ['EMFILE', 'ENFILE']) {
    const error = explainDiskError(thrown(code), '/runs/r/records');
    expect(error).toMatchObject({ code: 'disk.failed', detail: { facts: { path: '/runs/r/records', code } } });
    expect(error.message).toBe('Too many files and sockets are open for /runs/r/records to be opened.');
    expect(error.detail.remedy).toMatch(/in-flight.*ulimit -Hn/);
    expect(error.detail.remedy).not.toMatch(/dmesg/);
  }
});

test('each other code keeps its error', () => {
  const codes = {
    ENOSPC: 'disk.full',
    EDQUOT: 'disk.full',
    EROFS: 'disk.read-only',
    EACCES: 'disk.read-only',
    EIO: 'disk.failed',
  };
  for (const [code, kind] of Object.entries(codes))
    expect([code, explainDiskError(thrown(code), '/x').code]).toEqual([code, kind]);
  expect(explainDiskError(thrown('EIO'), '/x').detail.remedy).toMatch(/dmesg/);
  expect(explainDiskError(thrown('ERR_INVALID_ARG_TYPE'), '/x').code).toBe('bug.invariant');
});
