/** The way to a shell behind ssh, against a real sshd: what comes back, and what is left behind. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { openReach } from '../../src/machine/ssh/reach.ts';
import { openSharing } from '../../src/machine/ssh/ssh-command.ts';
import { until } from '../support/child-processes.ts';
import { expect, onTestFinished, test } from 'vitest';
import { nodeHost } from '../../src/host/node-host.ts';
import type { ShellReply } from '../../src/machine/shell-wire.ts';
import { openSshWire, type SshWire } from '../../src/machine/ssh/ssh-wire.ts';
import { startSshd, type TestSshd } from '../support/sshd.ts';

const TIME = { timeoutMs: 60_000 };

function wireTo(sshd: TestSshd, target = sshd.target): SshWire {
  const host = { ...nodeHost(), env: { ...process.env, ...sshd.env } };
  const wire = openSshWire(target, host);
  onTestFinished(() => wire.close());
  return wire;
}

function textOf(reply: ShellReply): string {
  if (reply.kind !== 'ended') return JSON.stringify(reply);
  const [stdout, stderr] = [new TextDecoder().decode(reply.stdout), reply.stderr];
  return `${reply.code}|${stdout}|${stderr}`;
}

test('a script says what it says: bytes, words on stderr, status', async () => {
  const wire = wireTo(await startSshd());
  const run = async (script: string) => textOf(await wire.run({ script, ...TIME }));
  expect(await run('echo out; echo err >&2; exit 7')).toBe('7|out\n|err\n');
  expect(await run('printf "no newline"')).toBe('0|no newline|');
  expect(await run('')).toBe('0||');
  expect(await run('sh -c "kill -9 \\$\\$"')).toMatch(/^137\|\|/);
  expect(await run('read -r line; echo "<$line> $?"')).toBe('0|<> 1\n|');
  expect(await run('if then')).toMatch(/^[12]\|\|/);
  expect(await run(`echo "$n$l$t$s" '$x' "\`echo a\`" 'it'"'"'s'\necho "\\\\"`)).toBe("0|  $x a it's\n\\\n|".replace('  ', ' '));
});

test('bytes are the same on both ways: 5 MB', async () => {
  const wire = wireTo(await startSshd());
  const bytes = randomBytes(5_000_000);
  const script = `base64 -d <<'END'\n${bytes.toString('base64').replaceAll(/.{76}/g, '$&\n')}\nEND`;
  const reply = await wire.run({ script, ...TIME });
  if (reply.kind !== 'ended') throw new Error(textOf(reply));
  expect(createHash('sha256').update(reply.stdout).digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'));
  const some = await wire.run({ script, most: 1000, ...TIME });
  expect(some.kind === 'ended' && Buffer.from(some.stdout).equals(bytes.subarray(0, 1000))).toBe(true);
});

test('what takes too long is ended there', async () => {
  const sshd = await startSshd();
  const wire = wireTo(sshd);
  expect(await wire.run({ script: 'sleep 987 & sleep 986', timeoutMs: 1000 })).toEqual({ kind: 'timeout' });
  expect(textOf(await wire.run({ script: 'ps ax | grep "sleep 98[67]"', ...TIME }))).toBe('1||');
});

test('zz reach', async () => {
  const sshd = await startSshd();
  const server = createServer((request, response) => response.end(`hello ${request.url}`)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = { ...nodeHost(), env: { ...process.env, ...sshd.env } };
  const reach = await openReach({ host, target: 'gpu-box', sharing: openSharing(), address: '127.0.0.1', port });
  await until(() => reach.isOpen());
  expect(await (await fetch(`${reach.baseUrl}/a`)).text()).toBe('hello /a');
  await sshd.cable.cut();
  await until(() => !reach.isOpen());
  await delay(1000);
  await sshd.cable.mend();
  await until(() => reach.isOpen());
  expect(await (await fetch(`${reach.baseUrl}/b`)).text()).toBe('hello /b');
  expect(reach.drops()).toBe(1);
  await reach.close();
  await expect(fetch(`${reach.baseUrl}/b`)).rejects.toThrow();
  server.close();
});
