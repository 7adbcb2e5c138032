/** Where the sockets of ssh lie: a folder that a person or a timer tidies away, and none that could be had. */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as anyTest, expect, onTestFinished } from 'vitest';
import { openSharing } from '../../src/machine/ssh/ssh-command.ts';
import { until } from '../support/child-processes.ts';
import { textOf, wayTo, wireTo } from '../support/ssh-bench.ts';
import { canStartSshd, startSshd } from '../support/sshd.ts';

const test = anyTest.runIf(canStartSshd);

const TIME = { timeoutMs: 60_000, mayRepeat: true };
const CLOSED = { headers: { connection: 'close' } };

test('where no sockets can be shared, scripts and ways have their own, and nothing of them stays', async () => {
  const sshd = await startSshd();
  const none = () => ({ kind: 'none' }) as const;
  expect(textOf(await wireTo(sshd, none).run({ script: 'echo 1', ...TIME }))).toBe('0|1\n|');
  const before = readdirSync(tmpdir());
  const way = await wayTo(sshd, await serve(), none);
  await until(() => way.isOpen());
  expect(await (await fetch(way.baseUrl, CLOSED)).text()).toBe('hello');
  await way.close();
  expect(readdirSync(tmpdir()).filter((name) => name.startsWith('aerie-ssh-') && !before.includes(name))).toEqual([]);
});

test('a folder for sockets that is taken away is made again', async () => {
  const sshd = await startSshd();
  const place = mkdtempSync(join(tmpdir(), 'a-'));
  onTestFinished(() => rmSync(place, { recursive: true }));
  const sharing = () => openSharing([place]);
  const wire = wireTo(sshd, sharing);
  const way = await wayTo(sshd, await serve(), sharing);
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

async function serve(): Promise<number> {
  const server = createServer((_, response) => response.end('hello'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}
