/** Ways through a real sshd that forbids them, in each way that it can; and what only looks like it. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test as anyTest, expect, onTestFinished } from 'vitest';
import { systemClock } from '../../src/host/node-host.ts';
import type { Reach } from '../../src/machine/machine.ts';
import { untilOpen } from '../../src/machine/until-open.ts';
import { until } from '../support/child-processes.ts';
import { serveHello } from '../support/hello-server.ts';
import { wayTo } from '../support/ssh-bench.ts';
import { canStartSshd, startSshd, type TestSshd } from '../support/sshd.ts';

const test = anyTest.runIf(canStartSshd);

const FORBIDDING: Readonly<Record<string, { readonly config?: readonly string[]; readonly key?: string }>> = {
  'AllowTcpForwarding no': { config: ['AllowTcpForwarding no'] },
  'AllowTcpForwarding remote': { config: ['AllowTcpForwarding remote'] },
  'DisableForwarding yes': { config: ['DisableForwarding yes'] },
  'PermitOpen of another port': { config: ['PermitOpen 127.0.0.1:9'] },
  'PermitOpen none': { config: ['PermitOpen none'] },
  'a key with restrict': { key: 'restrict' },
  'a key with permitopen': { key: 'permitopen="127.0.0.1:9"' },
};

test.each(Object.entries(FORBIDDING))('%s: the way is refused, whether or not somebody listens', async (_, { config, key }) => {
  const sshd = await startSshd({ sshdConfig: config ?? [] });
  if (key !== undefined) changeKey(sshd, (line) => `${key} ${line}`);
  for (const port of [await serveHello(), 1]) {
    const way = await wayTo(sshd, port);
    await expect(waitFor(way)).rejects.toMatchObject({
      code: 'machine.refused',
      message: `gpu-box lets nobody through to its port ${port}: sshd there forbids it.`,
      detail: {
        because: 'ssh was turned away 3 times of 3: channel 2: open failed: administratively prohibited: open failed',
        remedy: expect.stringContaining(`PermitOpen (if it stands there) with 127.0.0.1:${port};`),
      },
    });
    expect(way.isOpen()).toBe(false);
    expect(way.drops()).toBe(0);
    await way.close();
  }
});

test('a port that PermitOpen names is let through, a banner and a port where nobody listens are no refusal', async () => {
  const [port, free] = [await serveHello(), 1];
  const sshd = await startSshd({
    sshdConfig: [`PermitOpen 127.0.0.1:${port} 127.0.0.1:${free}`, `Banner ${import.meta.dirname}/machine.ts`],
  });
  for (const one of [port, free]) {
    const way = await wayTo(sshd, one);
    expect(await waitFor(way)).toBe(true);
    expect(way.refusal()).toBe(undefined);
  }
});

test('one session at a time, and connections that sshd turns away by a limit of its own, are no refusal', async () => {
  const sshd = await startSshd({ maxSessions: 1, sshdConfig: ['MaxStartups 2:100:2', 'LoginGraceTime 120'] });
  const port = await serveHello();
  const single = await wayTo(sshd, port);
  expect(await waitFor(single)).toBe(true);
  const held = await Promise.all([hold(sshd.port), hold(sshd.port)]);
  const way = await wayTo(sshd, port);
  await until(() => /drop connection|MaxStartups/i.test(sshd.log()));
  expect([way.isOpen(), way.refusal()]).toEqual([false, undefined]);
  for (const socket of held) socket.destroy();
  expect(await waitFor(way)).toBe(true);
  expect([single.isOpen(), single.refusal()]).toEqual([true, undefined]);
});

test('where it is allowed later, the way comes by itself', async () => {
  const sshd = await startSshd();
  changeKey(sshd, (line) => `restrict ${line}`);
  const port = await serveHello();
  const way = await wayTo(sshd, port);
  await expect(waitFor(way)).rejects.toMatchObject({ code: 'machine.refused' });
  changeKey(sshd, (line) => line.replace(/^restrict /, ''));
  await until(() => way.isOpen(), 60_000);
  expect(way.refusal()).toBe(undefined);
  expect(await (await fetch(way.baseUrl, { headers: { connection: 'close' } })).text()).toBe('hello');
}, 180_000); // it is tried again after half a minute

function waitFor(way: Reach): Promise<boolean> {
  return untilOpen(way, systemClock, systemClock.elapsed() + 60_000, new AbortController().signal);
}

function changeKey({ folder }: TestSshd, change: (line: string) => string): void {
  const keys = join(folder, 'authorized_keys');
  writeFileSync(keys, change(readFileSync(keys, 'utf8')));
}

/** A connection that never logs in: it takes one of those that sshd allows at once. */
async function hold(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined); // sshd ends those that stay too long
  onTestFinished(() => void socket.destroy());
  await once(socket, 'data');
  return socket;
}
