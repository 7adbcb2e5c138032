/** Logs of servers that somebody else started, found on real processes, files, pipes and terminals; docker and journalctl are fake programs. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodeHost } from '../../src/host/node-host.ts';
import { localMachine } from '../../src/machine/local/local-machine.ts';
import { parseInspection } from '../../src/server/attach/container-facts.ts';
import { findServerLog } from '../../src/server/attach/find-log.ts';
import { openServerLog } from '../../src/server/attach/read-server-log.ts';
import { until } from '../support/child-processes.ts';
import { installFakeDocker } from '../support/fake-docker.ts';
import { canMakeUnits, installFakeJournal, putIntoUnit } from '../support/fake-journal.ts';
import { freePort } from '../support/lookalike-project.ts';

const FIND = fileURLToPath(new URL('../support/find-log.mjs', import.meta.url));
/** A line that figures come from, so that what was read can be told. */
const CAPACITY = (tokens: number) =>
  `[2026-11-30 20:31:29 TP0] max_total_num_tokens=${tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=256, context_len=131072, available_gpu_mem=5.47 GB`;

function folderOf(): string {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const listens = (port: number) =>
  `const s=require("net").createServer();s.listen(${port},"127.0.0.1",()=>console.error("listening"))`;

/** A shell line that starts something that listens on `$PORT`; `exec` or not is the line's business. */
async function serve(line: string) {
  const port = await freePort();
  const child = spawn('sh', ['-c', line], {
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, NODE: process.execPath, SERVER: listens(port) },
  });
  onTestFinished(() => endGroup(child));
  const machine = localMachine(nodeHost());
  await until(async () => (await machine.portOwner(port))?.pid !== undefined);
  return { port, child, machine };
}

function endGroup({ pid = 0 }: ChildProcess): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}

describe.runIf(process.platform === 'linux')('on Linux', () => {
  test('a file that its output goes to, by stderr too, and whatever its name', async () => {
    const path = join(folderOf(), `log ${'$(touch x)'} "'`);
    writeFileSync(path, '');
    const { port, machine } = await serve(`exec "$NODE" -e "$SERVER" 2>"$0"`.replace('$0', path.replaceAll(/["$]/g, '\\$&')));
    expect(await findServerLog(machine, { port })).toMatchObject({ kind: 'file', path, readPath: path, isDeleted: false });
    expect(readFileSync(path, 'utf8')).toBe('listening\n');
  });

  test('a file that was deleted is named, and read through the process', async () => {
    const path = join(folderOf(), 'log');
    const { port, machine } = await serve(`exec "$NODE" -e "$SERVER" >${path} 2>&1`);
    appendFileSync(path, `${CAPACITY(159_277)}\n`);
    unlinkSync(path);
    writeFileSync(path, 'another file of that name\n');
    const log = await findServerLog(machine, { port });
    expect(log).toMatchObject({ kind: 'file', path, isDeleted: true, readPath: expect.stringMatching(/^\/proc\/\d+\/fd\/2$/) });
    const source = await openServerLog(machine, log, 'sglang');
    expect(await source?.readOn()).toBe(true);
    expect(source?.account().facts).toMatchObject({ poolTokens: 159_277 });
  });

  test('a file that was moved away is followed to its new name', async () => {
    const path = join(folderOf(), 'log');
    const { port, machine } = await serve(`exec "$NODE" -e "$SERVER" >${path} 2>&1`);
    renameSync(path, `${path}.1`);
    expect(await findServerLog(machine, { port })).toMatchObject({ path: `${path}.1`, readPath: `${path}.1` });
  });

  test('what tee writes behind a pipe', async () => {
    const path = join(folderOf(), 'log');
    const { port, machine } = await serve(`"$NODE" -e "$SERVER" 2>&1 | tee ${path} >/dev/null`);
    expect(await findServerLog(machine, { port })).toMatchObject({ kind: 'file', path });
  });

  test('a pipe to somebody who writes no file, or several, is said by name', async () => {
    const { port, machine } = await serve('"$NODE" -e "$SERVER" 2>&1 | cat');
    const log = await findServerLog(machine, { port });
    expect(log).toMatchObject({
      kind: 'none',
      because: expect.stringMatching(/^\S+ \(pid \d+\) writes into a pipe to cat \(pid \d+\)$/),
    });
  });

  test('nothing of its own, and the wrapper that started it has a file', async () => {
    const path = join(folderOf(), 'log');
    const { port, machine } = await serve(`exec >${path} 2>&1; "$NODE" -e "$SERVER" >/dev/null 2>&1 & wait`);
    expect(await findServerLog(machine, { port })).toMatchObject({ kind: 'file', path });
  });

  test('a terminal keeps nothing', async () => {
    const { port, machine } = await serve(`exec script -qec '"$NODE" -e "$SERVER"' /dev/null`);
    expect(await findServerLog(machine, { port })).toMatchObject({
      because: expect.stringContaining('writes to a terminal (/dev/pts/'),
    });
  });

  test('nobody listens, and a path of the run file', async () => {
    const machine = localMachine(nodeHost());
    expect(await findServerLog(machine, { port: await freePort() })).toMatchObject({
      because: expect.stringContaining('nothing listens'),
    });
    const path = join(folderOf(), 'log');
    expect(await findServerLog(machine, { path })).toMatchObject({
      kind: 'none',
      because: expect.stringContaining('is not there'),
    });
    writeFileSync(path, '');
    expect(await findServerLog(machine, { path })).toMatchObject({ kind: 'file', path });
  });

  test.runIf(process.geteuid?.() === 0)('another user sees that it may not see, and whom to ask', async () => {
    const { port } = await serve(`exec "$NODE" -e "$SERVER" >${join(folderOf(), 'log')} 2>&1`);
    const owner = await localMachine(nodeHost()).portOwner(port);
    const ask = (place: object) => {
      const asked = spawnSync(process.execPath, [FIND, JSON.stringify(place)], {
        uid: 65_534,
        gid: 65_534,
        cwd: '/',
        encoding: 'utf8',
      });
      return JSON.parse(asked.stdout === '' ? `"${asked.stderr}"` : asked.stdout) as object;
    };
    expect(ask({ port })).toMatchObject({ kind: 'none', remedy: expect.stringContaining(`sudo ss -ltnp 'sport = :${port}'`) });
    expect(ask({ pid: owner?.pid })).toMatchObject({
      because: expect.stringMatching(/belongs to user root, and where it writes is not shown to user nobody$/),
      remedy: expect.stringContaining(`sudo readlink /proc/${owner?.pid}/fd/1`),
    });
  });

  test('a container: by name, by the port that it publishes, and its log to the last line', async () => {
    const folder = folderOf();
    const [inside, outside] = [await freePort(), await freePort()];
    const fake = installFakeDocker(folder, { server: { entrypoint: [process.execPath, '-e'] } });
    onTestFinished(() => fake.endAll());
    const env = { ...process.env, ...fake.env };
    const script = `${listens(inside)};process.stdin.resume();console.log(${JSON.stringify(CAPACITY(159_277))});setTimeout(()=>console.error(${JSON.stringify(CAPACITY(376_029))}),500)`;
    spawnSync('docker', ['run', '-d', '--name', 'sglang', '-p', `${outside}:${inside}`, 'server', script], { env });
    const machine = localMachine({ ...nodeHost(), env });
    const byName = await findServerLog(machine, { container: 'sglang' });
    expect(byName).toMatchObject({
      kind: 'docker',
      container: { name: 'sglang', ports: [{ hostPort: outside, containerPort: inside }] },
    });
    expect(await findServerLog(machine, { port: outside })).toMatchObject({ kind: 'docker', container: { name: 'sglang' } });
    await until(() => spawnSync('docker', ['logs', 'sglang'], { env, encoding: 'utf8' }).stderr.includes('376029'));
    if (byName.kind !== 'docker') throw new Error('not docker');
    // As whoever may read docker's folder, and as whoever may only ask docker.
    for (const logPath of [byName.container.logPath, '/no/such/file']) {
      const source = await openServerLog(machine, { ...byName, container: { ...byName.container, logPath } }, 'sglang');
      expect(await source?.readOn()).toBe(true);
      const { facts } = source?.account() ?? {};
      expect(facts).toMatchObject({ poolTokens: 376_029, lines: 3 });
      await source?.readOn();
      expect(source?.account().facts.lines).toBe(3);
    }
    fake.setDaemon('denied');
    expect(await findServerLog(machine, { container: 'sglang' })).toMatchObject({
      kind: 'none',
      because: expect.stringContaining('permission denied'),
      remedy: expect.stringContaining('sudo docker inspect'),
    });
  });

  test('a log that docker turned over is read from its oldest file on', async () => {
    const path = join(folderOf(), 'x-json.log');
    const entry = (line: string) => `${JSON.stringify({ log: `${line}\n`, stream: 'stderr', time: 't' })}\n`;
    writeFileSync(`${path}.1`, entry(CAPACITY(1_000)) + entry('a'));
    writeFileSync(path, entry('b'));
    const machine = localMachine(nodeHost());
    const container = {
      id: 'x',
      name: 'x',
      image: '',
      state: 'running',
      pid: 1,
      exitCode: 0,
      isOutOfMemory: false,
      finishedAt: '',
      startedAt: '',
      network: '',
    } as const;
    const rest = { address: '', ports: [], words: [], logPath: path, logDriver: 'json-file' } as const;
    const source = await openServerLog(machine, { kind: 'docker', container: { ...container, ...rest } }, 'sglang');
    await source?.readOn();
    expect(source?.account().facts).toMatchObject({ poolTokens: 1_000, lines: 3 });
    appendFileSync(path, `${entry('c')}{"log":"torn`);
    await source?.readOn();
    renameSync(path, `${path}.1`);
    appendFileSync(`${path}.1`, ' line\\n"}\n');
    writeFileSync(path, entry('d'));
    await source?.readOn();
    expect(source?.account().facts.lines).toBe(6);
  });

  test('a line without an end that is longer than docker is asked for at once is no news', async () => {
    const bin = folderOf();
    const script = `#!/bin/sh\nprintf '2026-11-30T22:26:56.931000002Z '\nhead -c 4000000 /dev/zero | tr '\\0' x\n`;
    writeFileSync(join(bin, 'docker'), script, { mode: 0o755 });
    const machine = localMachine({ ...nodeHost(), env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` } });
    const container = parseInspection(JSON.stringify([{ Id: 'a'.repeat(64) }]));
    if (container === undefined) throw new Error('no container');
    const source = await openServerLog(machine, { kind: 'docker', container }, 'sglang');
    expect(await source?.readOn()).toBe(true);
    expect(source?.bytes).toBe(0);
  });

  test.runIf(canMakeUnits())('a unit of systemd: this start of it, to the last entry', async () => {
    const journal = installFakeJournal(folderOf());
    const invocations = ['a'.repeat(32), 'b'.repeat(32)] as const;
    journal.add('sglang-test.service', invocations[0], CAPACITY(1_000));
    journal.add('sglang-test.service', invocations[1], 'started', CAPACITY(159_277));
    const { port, machine } = await throughSocket();
    const owner = await machine.portOwner(port);
    putIntoUnit(owner?.pid ?? 0, 'sglang-test.service');
    const asked = localMachine({ ...nodeHost(), env: { ...process.env, ...journal.env } });
    const log = await findServerLog(asked, { port });
    expect(log).toMatchObject({ kind: 'journal', unit: 'sglang-test.service', isOfUser: false, invocation: invocations[1] });
    const source = await openServerLog(asked, log, 'sglang');
    await source?.readOn();
    expect(source?.account().facts).toMatchObject({ poolTokens: 159_277, lines: 2 });
    journal.add('sglang-test.service', invocations[1], [...Buffer.from(CAPACITY(376_029))]);
    await source?.readOn();
    await source?.readOn();
    expect(source?.account().facts).toMatchObject({ poolTokens: 376_029, lines: 3 });
  });
});

/** A process whose output is a socket, as journald's is. */
async function throughSocket() {
  const port = await freePort();
  const folder = folderOf();
  const server = createServer((socket) => void socket.on('error', () => undefined).resume()).listen(join(folder, 'stdout'));
  onTestFinished(() => void server.close());
  const relay = `const c=require("net").connect(${JSON.stringify(join(folder, 'stdout'))},()=>{const f=c._handle.fd;require("child_process").spawn(process.execPath,["-e",process.env.SERVER],{stdio:["ignore",f,f]})})`;
  const child = spawn(process.execPath, ['-e', relay], {
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, SERVER: listens(port) },
  });
  onTestFinished(() => endGroup(child));
  const machine = localMachine(nodeHost());
  await until(async () => (await machine.portOwner(port))?.pid !== undefined);
  return { port, machine };
}
