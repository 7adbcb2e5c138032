/** A small disk in memory, to be filled, made larger or made read-only. Needs the right to mount. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  /** Makes it larger. */
  resize(bytes: number): void;
  makeReadOnly(): void;
  makeWritable(): void;
}

/** Mounts a disk of this size at `path` and takes it away again whatever happens. */
export async function onSmallDisk(path: string, bytes: number, body: (disk: SmallDisk) => Promise<void>): Promise<void> {
  mkdirSync(path, { recursive: true });
  mount(['-t', 'tmpfs', '-o', `size=${bytes},mode=755`, 'tmpfs', path]);
  const remount = (option: string) => mount(['-o', `remount,${option}`, path]);
  try {
    await body({
      resize: (size) => remount(`size=${size}`),
      makeReadOnly: () => remount('ro'),
      makeWritable: () => remount('rw'),
    });
  } finally {
    // A reader may still hold a file of it: then it goes when that is closed.
    if (spawnSync('umount', [path]).status !== 0) spawnSync('umount', ['-l', path]);
  }
}

/** Why there can be no such disk here, or undefined. */
export function whyNoSmallDisk(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-mount-'));
  const tried = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=65536', 'tmpfs', folder], { encoding: 'utf8' });
  if (tried.status === 0) spawnSync('umount', [folder]);
  rmSync(folder, { recursive: true });
  if (tried.error !== undefined) return 'there is no mount';
  return tried.status === 0 ? undefined : `mounting is not permitted: ${tried.stderr.trim()}`;
}

function mount(args: readonly string[]): void {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`mount ${args.join(' ')}: ${stderr}`);
}
