/**
 * What every machine keeps, whoever reaches it and how. Speaks only through Machine: programs are started by it, files are read
 * by it. The programs are those of any POSIX system, and a `perl` where a zombie is needed.
 */
import { describe, expect, test } from 'vitest';
import { AerieError } from '../../src/base/errors.ts';
import { quoteShell } from '../../src/base/quote-shell.ts';
import { findLaunched } from '../../src/machine/find-launched.ts';
import { until } from '../support/child-processes.ts';
import { launchOf, presenceOf, readLog, type StarterBench } from '../support/machine-bench.ts';
import { describeFiles } from './machine-files.ts';

export function describeMachine(name: string, open: () => Promise<StarterBench>): void {
  describe(`${name}: a program`, () => describeLife(open));
  describe(`${name}: a launch`, () => describeLaunch(open));
  describe(`${name}: what outlives its starter`, () => describeOutliving(open));
  describe(`${name}: what it has`, () => describeMeans(open));
  describe(`${name}: files and names`, () => describeFiles(open));
}

function perlOf({ tool }: StarterBench): string {
  return tool?.('perl') ?? 'perl';
}

function describeOutliving(open: () => Promise<StarterBench>): void {
  test('a program runs on when its starter is killed, is found by its marker, and its exit status is read', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, `sh -c 'while test ! -e end; do sleep 0.1; done; exit 5'`);
    const starter = bench.startElsewhere(launch);
    const identity = await starter.identity;
    await starter.kill();
    const found = await findLaunched(machine, launch);
    expect(found).toMatchObject({ kind: 'running', identity: { pid: identity.pid, startTicks: identity.startTicks } });
    expect((await machine.findByMarker(launch.marker)).map(({ pid }) => pid)).toContain(identity.pid);
    expect(await presenceOf(machine, launch, identity)).toBe('running');
    await machine.run({ file: 'touch', args: [`${bench.folder}/end`], timeoutMs: 60_000 });
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 5');
  });

  test('a starter that is killed in a setup line leaves a launch that goes on, and is found', async () => {
    const bench = await open();
    const { machine } = bench;
    const setup = ['touch begun; while test ! -e go; do sleep 0.1; done'];
    const launch = launchOf(bench, 'sleep 1000', { setup });
    const starter = bench.startElsewhere(launch);
    await until(async () => (await machine.readFile(`${bench.folder}/begun`, 0, 0)) !== undefined);
    expect((await findLaunched(machine, launch)).kind).toBe('setting-up');
    await starter.kill();
    await machine.run({ file: 'touch', args: [`${bench.folder}/go`], timeoutMs: 60_000 });
    await until(async () => (await findLaunched(machine, launch)).kind === 'running');
    const found = await findLaunched(machine, launch);
    expect(found.kind === 'running' && (await presenceOf(machine, launch, found.identity))).toBe('running');
  });

  test('one that was said to be none never comes: its script finds the claim, starts nothing and writes nothing', async () => {
    const bench = await open();
    const { machine, folder } = bench;
    const launch = launchOf(bench, `touch '${folder}/started'`);
    expect(await findLaunched(machine, launch)).toEqual({ kind: 'none' });
    await expect(machine.start(launch)).rejects.toMatchObject({
      code: 'server.did-not-start',
      detail: { facts: { step: 'claimed' } },
    });
    expect(await findLaunched(machine, launch)).toEqual({ kind: 'none' });
    for (const path of [launch.logPath, launch.statusPath, `${folder}/started`])
      expect(await machine.readFile(path, 0, 0)).toBe(undefined);
    // No claim stands in the way of the next launch, which has a marker of its own.
    const next = launchOf(bench, 'sleep 1000');
    const identity = await machine.start(next);
    expect(await findLaunched(machine, next)).toMatchObject({ kind: 'running', identity: { pid: identity.pid } });
  });
}

function describeMeans(open: () => Promise<StarterBench>): void {
  test('runs short commands, with an environment, and says how each ended', async () => {
    const { machine } = await open();
    const run = (script: string, timeoutMs = 60_000) =>
      machine.run({ file: 'sh', args: ['-c', script], env: { GIVEN: 'a b' }, timeoutMs });
    expect(await run('echo "$GIVEN"; echo no >&2; exit 3')).toEqual({ kind: 'ended', code: 3, stdout: 'a b', stderr: 'no' });
    expect(await machine.run({ file: 'no-such-program', args: [], timeoutMs: 60_000 })).toEqual({ kind: 'absent' });
    // What it has started holds its output open, and is ended with it.
    expect(await run('sleep 1000 & sleep 1000; echo never', 200)).toEqual({ kind: 'timeout' });
    const signal = AbortSignal.abort();
    expect(await machine.run({ file: 'sleep', args: ['1000'], timeoutMs: 60_000, signal })).toEqual({ kind: 'aborted' });
  });

  test('knows what is left of memory and disk, also for a folder that is not there yet', async () => {
    const { machine, folder } = await open();
    const { memoryAvailableBytes, diskFreeBytes, sharedMemoryFreeBytes } = await machine.resources([folder, `${folder}/a/b`]);
    expect(memoryAvailableBytes).toBeGreaterThan(0);
    expect(sharedMemoryFreeBytes).toBeGreaterThan(0);
    expect(diskFreeBytes).toHaveLength(2);
    for (const bytes of diskFreeBytes) expect(bytes).toBeGreaterThan(0);
  });

  test('knows who listens on a port', async () => {
    const bench = await open();
    const { machine } = bench;
    const listen =
      'use IO::Socket::INET; $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1) or die; $| = 1; print $s->sockport, "\\n"; sleep 1000';
    const launch = launchOf(bench, `${perlOf(bench)} -e ${quoteShell(listen)}`);
    const identity = await machine.start(launch);
    await until(async () => (await readLog(machine, launch)).endsWith('\n'));
    const port = Number(await readLog(machine, launch));
    expect(await machine.portOwner(port)).toEqual({ port, pid: identity.pid, command: identity.command });
    await machine.signal(identity, 'SIGKILL');
    await until(async () => (await machine.portOwner(port)) === undefined);
  });

  test('answers about cards, whether there are any or not', async () => {
    const { machine } = await open();
    const gpus = await machine.gpus();
    expect(['read', 'absent', 'failed']).toContain(gpus.kind);
    const { holders, unknown } = await machine.holders();
    if (gpus.kind === 'absent') expect([holders, unknown]).toEqual([[], []]);
  });
}

function describeLife(open: () => Promise<StarterBench>): void {
  test('runs until it is told to end, and says how it ended', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, 'sleep 1000');
    const identity = await machine.start(launch);
    expect(identity.command).toBe('sleep 1000');
    expect(await presenceOf(machine, launch, identity)).toBe('running');
    expect(await machine.signal(identity, 'SIGTERM')).toBe('sent');
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 143'); // 128 + SIGTERM
    expect(await machine.signal(identity, 'SIGTERM')).toBe('gone');
    await until(async () => (await machine.findByMarker(launch.marker)).length === 0);
  });

  test('that ends at once has an exit status and a log', async () => {
    const bench = await open();
    const { machine } = bench;
    for (const status of [0, 1, 77]) {
      const launch = launchOf(bench, `sh -c 'echo out; echo err >&2; exit ${status}'`);
      const identity = await machine.start(launch);
      await until(async () => (await presenceOf(machine, launch, identity)) === `gone ${status}`);
      expect(await readLog(machine, launch)).toBe('out\nerr\n');
      expect(await findLaunched(machine, launch)).toMatchObject({ kind: 'ended', identity: { pid: identity.pid } });
    }
  });

  test('that ignores SIGTERM runs on, and SIGKILL ends it', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, `sh -c 'trap "" TERM; echo deaf; while :; do sleep 1; done'`);
    const identity = await machine.start(launch);
    await until(async () => (await readLog(machine, launch)).includes('deaf'));
    expect(await machine.signal(identity, 'SIGTERM')).toBe('sent');
    expect(await presenceOf(machine, launch, identity)).toBe('running');
    expect(await machine.signal(identity, 'SIGKILL')).toBe('sent');
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 137');
  });

  test('is never another one with its pid', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, 'sleep 1000');
    const identity = await machine.start(launch);
    const others = [
      { ...identity, startTicks: identity.startTicks + 1 },
      { ...identity, bootId: '00000000-0000-0000-0000-000000000000' },
    ];
    for (const other of others) {
      expect(await machine.signal(other, 'SIGKILL')).toBe('another-process');
      expect((await machine.look(other, launch)).main).toBe('gone');
    }
    expect(await presenceOf(machine, launch, identity)).toBe('running');
  });

  test('and all that it starts are a family, by marker, by session and by descent', async () => {
    const bench = await open();
    const { machine } = bench;
    // One loses its environment, one its session, one its parent.
    const command = `sh -c 'env -i sleep 1001 & ${bench.tool?.('setsid') ?? 'setsid'} sleep 1002 & (sleep 1003 &); echo up; wait'`;
    const launch = launchOf(bench, command);
    const identity = await machine.start(launch);
    const sleepers = async () =>
      (await machine.look(identity, launch)).family
        .map(({ command }) => command)
        .filter((command) => command.startsWith('sleep '));
    await until(async () => (await sleepers()).length === 3);
    expect((await sleepers()).sort()).toEqual(['sleep 1001', 'sleep 1002', 'sleep 1003']);
    const look = await machine.look(identity, launch);
    expect(look.family.find(({ pid }) => pid === identity.pid)).toMatchObject({ ...identity, presence: 'running' });
    expect(look.residentBytes).toBeGreaterThan(0);
    expect(look.compilers).toBe(0);
  });

  test('that nobody reaps is a zombie with its parent', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, `${perlOf(bench)} -e 'unless (fork) { exit 0 } sleep 1000'`);
    const identity = await machine.start(launch);
    const zombies = async () => (await machine.look(identity, launch)).family.filter(({ presence }) => presence === 'zombie');
    await until(async () => (await zombies()).length === 1);
    const [zombie] = await zombies();
    expect(zombie?.parent).toBe(identity.pid);
    expect(zombie && (await machine.signal(zombie, 'SIGKILL'))).toBe('gone'); // it has ended
  });
}

function describeLaunch(open: () => Promise<StarterBench>): void {
  test('gives the program its words, its folder and its environment as they are', async () => {
    const bench = await open();
    const { machine } = bench;
    const folder = `${bench.folder}/a 'b' "c" $(d) \`e\`\nf`;
    await machine.run({ file: 'mkdir', args: ['-p', '--', folder], timeoutMs: 60_000 });
    const words = ["it's", '$(echo no)', '`no`', '--flag=a b', '', '\\', '-n', 'a\nb', '*', '~', '!!'];
    const value = '\'"$(no)`no`\n\\';
    const launch = launchOf(
      bench,
      `sh -c 'pwd; echo "$V"; for w; do printf "<%s>" "$w"; done' x ${words.map(quoteShell).join(' ')}`,
      {
        ...{ workFolder: folder, logPath: `${folder}/the log`, statusPath: `${folder}/the 'status'`, env: { V: value } },
      },
    );
    const identity = await machine.start(launch);
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 0');
    expect(await readLog(machine, launch)).toBe(`${folder}\n${value}\n${words.map((word) => `<${word}>`).join('')}`);
  });

  test('reads setup lines in one shell, before the program', async () => {
    const bench = await open();
    const { machine } = bench;
    const setup = ['activate() { NAME=$1; export NAME; }', 'activate "from setup"', 'cd /', 'set -eu'];
    const launch = launchOf(bench, `sh -c 'echo "$NAME in $PWD as $AERIE_LAUNCH"'`, { setup });
    const identity = await machine.start(launch);
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 0');
    expect(await readLog(machine, launch)).toBe(`from setup in ${bench.folder} as ${launch.marker}\n`);
  });

  test.each([
    ['fails', 'sh -c "echo no such thing >&2; exit 3"', 'no such thing', 3],
    ['ends the shell', 'echo going; exit 4', 'going', 4],
    ['is no shell', 'if then', 'syntax error', undefined],
  ])('stops at a setup line that %s, and says what it said', async (_, line, output, status) => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, 'sleep 1000', { setup: ['true', line, 'echo never'] });
    const error = await machine.start(launch).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(AerieError);
    if (!(error instanceof AerieError)) return;
    expect(error.code).toBe('server.did-not-start');
    expect(error.message).toContain(`Setup line 2 ended with exit status ${status ?? ''}`);
    expect(error.message).toContain(line);
    expect(error.detail.evidence?.join('\n').toLowerCase()).toContain(output); // shells differ in case
    expect(await readLog(machine, launch)).not.toContain('never');
    await until(async () => (await machine.findByMarker(launch.marker)).length === 0);
    expect(await findLaunched(machine, launch)).toMatchObject({ kind: 'failed', report: { setupLine: 1 } });
  });

  test('that cannot be: a quote left open, a folder that is not there, a log that cannot be written', async () => {
    const bench = await open();
    const { machine, folder } = bench;
    const refused = async (command: string, more: Parameters<typeof launchOf>[2]) => {
      const launch = launchOf(bench, command, more);
      await expect(machine.start(launch)).rejects.toMatchObject({ code: 'server.did-not-start' });
      expect(await machine.findByMarker(launch.marker)).toEqual([]);
    };
    await refused(`echo 'open`, {});
    await refused('true', { workFolder: `${folder}/nowhere` });
    await refused('true', { logPath: '/proc/nowhere/log' });
  });

  test('an environment is on no command line and in no file', async () => {
    const bench = await open();
    const { machine, folder } = bench;
    const secret = 'hf_very-secret';
    const launch = launchOf(bench, 'sleep 1000', { env: { HF_TOKEN: secret }, setup: ['test "$HF_TOKEN" != ""'] });
    const identity = await machine.start(launch);
    // In the end the program, and the shell that waits for it; who hands the script over may be there a moment longer.
    await until(async () => {
      const { family } = await machine.look(identity, launch);
      for (const { command } of family) expect(command).not.toContain(secret);
      return family.length === 2;
    });
    const found = await machine.run({
      file: bench.tool?.('grep') ?? 'grep',
      args: ['-r', '-l', secret, folder],
      timeoutMs: 60_000,
    });
    expect(found).toMatchObject({ kind: 'ended', code: 1 }); // nothing found
  });

  test('a program has SIGINT and SIGQUIT as everybody, and nothing of its starter open', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(
      bench,
      `${perlOf(bench)} -e 'print "$SIG{INT} $SIG{QUIT} $SIG{PIPE}|", join(" ", sort map { s/.*\\///r } glob "/proc/self/fd/[0-9]"), "|", -t STDIN, "\\n"'`,
    );
    const identity = await machine.start(launch);
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 0');
    expect(await readLog(machine, launch)).toBe('  |0 1 2 3|\n'); // 3 is glob's own
  });

  test('a program that is not there is its exit status and its log', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, 'no-such-engine --port 1');
    const identity = await machine.start(launch);
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 127'); // as shells say
    expect(await readLog(machine, launch)).toContain('no-such-engine');
  });

  test('its log is read from an offset, as far as was asked', async () => {
    const bench = await open();
    const { machine } = bench;
    const launch = launchOf(bench, `printf '0123456789'`);
    await machine.start(launch);
    const read = async (offset: number, most: number) => {
      const slice = await machine.readFile(launch.logPath, offset, most);
      return slice && [new TextDecoder().decode(slice.bytes), slice.size];
    };
    await until(async () => (await read(0, 0))?.[1] === 10);
    expect(await read(0, 4)).toEqual(['0123', 10]);
    expect(await read(8, 100)).toEqual(['89', 10]);
    expect(await read(10, 100)).toEqual(['', 10]);
    expect(await read(1_000_000, 100)).toEqual(['', 10]);
    expect(await machine.readFile(`${bench.folder}/nothing`, 0, 10)).toBeUndefined();
    expect(await machine.readFile(bench.folder, 0, 10)).toBeUndefined();
  });
}
