/** Where the sockets of ssh lie: a folder that a person or a timer tidies away, and none that could be had. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as anyTest, expect, onTestFinished, vi } from 'vitest';
import { openSharing } from '../../src/machine/ssh/ssh-command.ts';
import { until } from '../support/child-processes.ts';
import { serveHello } from '../support/hello-server.ts';
import { textOf, wayTo, wireTo } from '../support/ssh-bench.ts';
import { canStartSshd, startSshd } from '../support/sshd.ts';

const test = anyTest.runIf(canStartSshd);

const TIME = { timeoutMs: 60_000, mayRepeat: true };
const CLOSED = { headers: { connection: 'close' } };

test('where no sockets can be shared, scripts and ways have their own, and nothing of them stays', async () => {
  const sshd = await startSshd();
  const none = () => ({ kind: 'none' }) as const;
  expect(textOf(await wireTo(sshd, none).run({ script: 'echo 1', ...TIME }))).toBe('0|1\n|');
  const place = mkdtempSync(join(tmpdir(), 'a-'));
  vi.stubEnv('TMPDIR', place); // where nobody else makes folders meanwhile
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(place, { recursive: true });
  });
  const way = await wayTo(sshd, await serveHello(), none);
  await until(() => way.isOpen());
  expect(readdirSync(place)).toHaveLength(1);
  expect(await (await fetch(way.baseUrl, CLOSED)).text()).toBe('hello');
  await way.close();
  expect(readdirSync(place)).toEqual([]);
});

test('a folder for sockets that is taken away is made again', async () => {
  const sshd = await startSshd();
  const place = mkdtempSync(join(tmpdir(), 'a-'));
  onTestFinished(() => rmSync(place, { recursive: true }));
  const sharing = () => openSharing([place]);
  const wire = wireTo(sshd, sharing);
  const way = await wayTo(sshd, await serveHello(), sharing);
  await until(() => way.isOpen());
  for (const word of ['one', 'two']) {
    expect(textOf(await wire.run({ script: `echo ${word}`, ...TIME }))).toBe(`0|${word}\n|`);
    rmSync(join(place, readdirSync(place)[0] ?? ''), { recursive: true });
  }
  await sshd.cable.cut();
  await until(() => !way.isOpen());
  await sshd.cable.mend();
  await until(() => way.isOpen());
  expect(await (await fetch(way.baseUrl, CLOSED)).text()).toBe('hello');
});
