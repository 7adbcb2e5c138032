/** The way to a shell behind ssh, against a real sshd: what goes in, what comes out, and whatever stands around it. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { test as anyTest, describe, expect } from 'vitest';
import { quoteShell } from '../../src/base/quote-shell.ts';
import type { ShellReply } from '../../src/machine/shell-wire.ts';
import { openSharing, sharingOptions } from '../../src/machine/ssh/ssh-command.ts';
import { openSshWire } from '../../src/machine/ssh/ssh-wire.ts';
import { until } from '../support/child-processes.ts';
import { hostOf, textOf, wireTo } from '../support/ssh-bench.ts';
import { canStartSshd, isRoot, startSshd } from '../support/sshd.ts';

const test = anyTest.runIf(canStartSshd);

const TIME = { timeoutMs: 60_000 };

test('a script is told with its bytes, its words on stderr and its status', async () => {
  const wire = wireTo(await startSshd());
  const run = async (script: string) => textOf(await wire.run({ script, ...TIME }));
  expect(await run('echo out; echo err >&2; exit 7')).toBe('7|out\n|err\n');
  expect(await run('printf "no end of line"')).toBe('0|no end of line|');
  expect(await run('')).toBe('0||');
  expect(await run('exec sh -c "kill -9 \\$\\$"')).toMatch(/^137\|\|/);
  expect(await run('sh -c "kill -15 \\$\\$"')).toMatch(/^143\|\|/);
  expect(await run('exec sh -c "exit 3"')).toBe('3||');
  expect(await run('trap "echo bye" EXIT; exit 4')).toBe('4|bye\n|');
  expect(await run('if then')).toMatch(/^[12]\|\|.*syntax error/i);
});

test('a script has a shell of its own, with nothing on its stdin and nothing of the way in its variables', async () => {
  const wire = wireTo(await startSshd());
  const run = async (script: string) => textOf(await wire.run({ script, ...TIME }));
  expect(await run('read -r line; echo "<$line> $?"')).toBe('0|<> 1\n|');
  expect(await run('echo "<$n$l$t$s>"; ls /proc/self/fd | wc -l')).toBe('0|<>\n4\n|'); // 0, 1, 2 and the folder itself
  expect(await run('x=1')).toBe('0||');
  expect(await run('echo "<$x>"')).toBe('0|<>\n|');
});

test('five million random bytes come through in both directions, and no more are kept than are asked for', async () => {
  const wire = wireTo(await startSshd());
  const bytes = randomBytes(5_000_000);
  const script = `base64 -d <<'END'\n${bytes.toString('base64').replaceAll(/.{76}/g, '$&\n')}\nEND\nexit 9`;
  const stdoutOf = (reply: ShellReply) => (reply.kind === 'ended' && reply.code === 9 ? Buffer.from(reply.stdout) : undefined);
  expect(stdoutOf(await wire.run({ script, ...TIME }))?.equals(bytes)).toBe(true);
  expect(stdoutOf(await wire.run({ script, most: 1_000, ...TIME }))?.equals(bytes.subarray(0, 1_000))).toBe(true);
  expect(stdoutOf(await wire.run({ script, most: 0, ...TIME }))?.length).toBe(0);
});

test('no word of a script means anything to what hands it on', async () => {
  const wire = wireTo(await startSshd());
  const hostile = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.string({
      unit: fc.constantFrom("'", '"', '\\', '$(id)', '`id`', '\n', '\r', '!', '$s', '{', '}', '%', ';', '&', ' ', '-', '~', 'é'),
    }),
  );
  await fc.assert(
    fc.asyncProperty(
      hostile.filter((word) => !word.includes('\0')),
      async (word) => {
        const reply = await wire.run({ script: `printf %s ${quoteShell(word)}; exit 5`, ...TIME });
        expect(textOf(reply)).toBe(`5|${Buffer.from(word).toString()}|`);
      },
    ),
    { numRuns: 60 },
  );
  await expect(wire.run({ script: 'echo \0', ...TIME })).rejects.toThrow('a script cannot hold a NUL byte');
});

test('what a login prints is not taken for an answer', async () => {
  const sshd = await startSshd({ ...(isRoot && { account: { shell: '/bin/bash' } }) });
  writeFileSync(join(sshd.home, '.bashrc'), 'echo "Welcome! 0"; printf "no end of line"; echo "quota exceeded" >&2\n');
  const wire = wireTo(sshd);
  expect(textOf(await wire.run({ script: 'echo out; echo err >&2; exit 6', ...TIME }))).toBe('6|out\n|err\n');
});

describe.runIf(isRoot)('a login shell that is no sh', () => {
  const notSh = (body: string) => async () => {
    const folder = await startSshd();
    const shell = join(folder.folder, 'login-shell');
    writeFileSync(shell, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    const wire = wireTo(await startSshd({ account: { shell } }));
    return textOf(await wire.run({ script: `echo 'a b' "$(echo c)" | wc -w; exit 6`, ...TIME }));
  };
  test('hands the command on', async () => expect(await notSh('exec /bin/sh -c "$2"')()).toBe('6|3\n|'));
  test('waits for the command', async () => expect(await notSh('/bin/sh -c "$2"; echo bye')()).toBe('6|3\n|'));

  const shells = ['/bin/csh', '/usr/bin/csh', '/usr/bin/tcsh', '/usr/bin/fish', '/usr/bin/zsh', '/bin/dash', '/bin/bash'];
  test.each(shells.filter((shell) => existsSync(shell)))('is %s', async (shell) => {
    const wire = wireTo(await startSshd({ account: { shell } }));
    expect(textOf(await wire.run({ script: `echo 'a  "b' "$(echo c)"; exit 6`, ...TIME }))).toBe(`6|a  "b c\n|`);
  });

  test('and lets nobody in', async () => {
    const wire = wireTo(await startSshd({ account: { shell: '/usr/sbin/nologin' } }));
    const reply = await wire.run({ script: 'echo 1', ...TIME });
    expect(reply).toMatchObject({ kind: 'lost', isConfiguration: true, lacks: 'sh' });
    expect(reply).toHaveProperty('because', expect.stringMatching(/^it runs no sh: the command ended with 1/));
  });
});

describe.each([{ maxSessions: 1 }, { maxSessions: 2 }, { maxSessions: 10 }])(
  'twenty scripts at once, $maxSessions sessions',
  (limits) => {
    test('each is answered, and no more than four run together', async () => {
      const sshd = await startSshd(limits);
      const wire = wireTo(sshd);
      const script = (nth: number) =>
        `: >"$HOME/run.${nth}"; ls "$HOME" | grep -c '^run'; sleep 0.1; rm "$HOME/run.${nth}"; echo err${nth} >&2; exit ${nth}`;
      const replies = await Promise.all(Array.from({ length: 20 }, (_, nth) => wire.run({ script: script(nth), ...TIME })));
      const together = replies.map((reply, nth) => {
        expect(textOf(reply)).toMatch(new RegExp(`^${nth}\\|\\d+\\n\\|err${nth}\\n$`));
        return reply.kind === 'ended' ? Number(new TextDecoder().decode(reply.stdout)) : 99;
      });
      expect(Math.max(...together)).toBeGreaterThan(1);
      expect(Math.max(...together)).toBeLessThanOrEqual(4);
    });
  },
);

test('one connection serves all scripts, and a new one is made where it is killed', async () => {
  const sshd = await startSshd();
  const wire = wireTo(sshd);
  const ask = () => wire.run({ script: 'echo "$SSH_CONNECTION"', ...TIME });
  const [first, second] = [textOf(await ask()), textOf(await ask())];
  expect(second).toBe(first);
  const master = masterOf(sshd.folder);
  process.kill(master, 'SIGKILL');
  const third = textOf(await ask());
  expect(third).toMatch(/^0\|127/);
  expect(third).not.toBe(first);
  await until(() => masterOf(sshd.folder) !== master);
});

/** ssh tells who listens on the socket. */
function masterOf(folder: string): number {
  const options = sharingOptions(openSharing()).flatMap((option) => ['-o', option]);
  const { stdout, stderr } = spawnSync(join(folder, 'ssh'), [...options, '-O', 'check', 'gpu-box'], { encoding: 'utf8' });
  return Number(/pid=(\d+)/.exec(stdout + stderr)?.[1]);
}

test('a jump host is gone through, and a script that is ended on the way ends nothing of the others', async () => {
  const sshd = await startSshd({ sshConfig: ['ProxyJump hop'] });
  const config = join(sshd.folder, 'ssh_config');
  const hop = readFileSync(config, 'utf8').replace('Host gpu-box', 'Host hop').replace('ProxyJump hop', 'ProxyJump none');
  appendFileSync(config, hop);
  const wire = wireTo(sshd);
  const ask = () => wire.run({ script: 'echo "$SSH_CONNECTION"', ...TIME });
  expect(await wire.run({ script: 'sleep 600', timeoutMs: 1_000 })).toEqual({ kind: 'timeout' }); // it has made the connection
  const [first, second] = [textOf(await ask()), textOf(await ask())];
  expect(first).toMatch(/^0\|127/);
  expect(second).toBe(first);
  expect(sshd.log().match(/Accepted publickey/g)).toHaveLength(2); // the hop, and the machine behind it
});

test('a key, a host key, a name, a program: what no waiting helps is told apart from a machine that is away', async () => {
  const sshd = await startSshd();
  const ask = async (where: Parameters<typeof wireTo>[0] = sshd) => wireTo(where).run({ script: 'echo 1', ...TIME });
  const lost = (because: RegExp, isConfiguration: boolean) => ({
    kind: 'lost',
    because: expect.stringMatching(because),
    isConfiguration,
  });
  const nowhere = { env: sshd.env, target: 'no-such-machine.invalid' };
  expect(await ask(nowhere)).toEqual(lost(/Could not resolve hostname no-such-machine/, true));
  expect(await ask({ ...sshd, env: { AERIE_SSH: join(sshd.folder, 'no-ssh') } })).toEqual({
    ...lost(/is not installed here/, true),
    lacks: 'ssh',
  });
  await sshd.cable.cut();
  expect(await ask()).toEqual(lost(/Connection refused/, false));
  await sshd.cable.mend();
  const known = join(sshd.folder, 'known_hosts');
  const right = readFileSync(known, 'utf8');
  writeFileSync(known, `gpu-box ${readFileSync(join(sshd.folder, 'user_key.pub'), 'utf8')}`);
  expect(await ask()).toEqual(lost(/Host key verification failed/, true));
  writeFileSync(known, '');
  expect(await ask()).toEqual(lost(/Host key verification failed/, true));
  writeFileSync(known, right);
  writeFileSync(join(sshd.folder, 'authorized_keys'), '');
  expect(await ask()).toEqual(lost(/Permission denied \(publickey\)/, true));
  writeFileSync(join(sshd.folder, 'ssh_config'), 'Nonsense yes\n');
  expect(await ask()).toEqual(lost(/Bad configuration option|terminating/, true));
});

test('a target is never an option of ssh', async () => {
  const sshd = await startSshd();
  for (const target of ['-oProxyCommand=touch /tmp/x', '', 'a b', 'a\nb'])
    expect(() => openSshWire(target, hostOf(sshd))).toThrow('is no name of a machine');
});
