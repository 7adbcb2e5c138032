/**
 * Another machine for tests: a real sshd on loopback with keys, known hosts, home folder and environment of its own, behind a
 * cable that a test can cut. All of it ends with the test, its sessions too; what a session has detached is the test's to end.
 *
 * The machine is known as `gpu-box` to the program that AERIE_SSH names: the system's ssh with a config of the test's own.
 * Nothing of the user's config, keys or agents is used. As root sshd needs /run/sshd, which is made where it is missing.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Cable, layCable } from './cable.ts';
import { childrenOf, isAlive, until } from './child-processes.ts';

export interface SshdRequest {
  /** Sessions at once on one connection: sshd's own default is 10; 1 turns multiplexing off. */
  readonly maxSessions?: number;
  /** Environment of what runs there, over sshd's own. PATH: left out, the one of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * An account without rights, made for this test and removed after it; only root can make one. `shell` is its login shell: a
   * program that is called with `-c COMMAND`. Left out: the user of this process, with its own shell.
   */
  readonly account?: { readonly shell?: string };
  /** More lines of the sshd's config. */
  readonly sshdConfig?: readonly string[];
  /** More lines for the machine in the config of ssh. */
  readonly sshConfig?: readonly string[];
}

export interface TestSshd {
  /** `gpu-box`. */
  readonly target: string;
  /** To be laid over the environment of Aerie: AERIE_SSH. */
  readonly env: Readonly<Record<string, string>>;
  /** HOME there; an empty folder at first, and a path of here. */
  readonly home: string;
  readonly user: string;
  /** Files of this sshd: `ssh_config`, `known_hosts`, `user_key`. */
  readonly folder: string;
  readonly cable: Cable;
  /** Where sshd itself listens, without the cable. */
  readonly port: number;
  /** What sshd has said so far. */
  log(): string;
  /** Ends sshd and its sessions, as a machine that goes down. */
  stop(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
}

const SSHD = '/usr/sbin/sshd'; // it must be called by its absolute path: it starts itself anew for each connection
/** Where sshd of root goes to drop its rights. */
const EMPTY_FOLDER = '/run/sshd';

export const hasSshd = existsSync(SSHD);
/** Where the whole suite must run, a missing sshd fails it. */
export const canStartSshd = hasSshd || process.env['AERIE_REQUIRE_ALL'] === '1';
export const isRoot = userInfo().uid === 0;

export async function startSshd(request: SshdRequest = {}): Promise<TestSshd> {
  if (isRoot) mkdirSync(EMPTY_FOLDER, { recursive: true, mode: 0o755 });
  const folder = mkdtempSync(join(tmpdir(), 'aerie-sshd-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755); // another user reads its key and home in there
  const home = join(folder, 'home');
  mkdirSync(home);
  for (const key of ['host_key', 'user_key'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', key, '-f', join(folder, key)]);
  writeFileSync(join(folder, 'authorized_keys'), readFileSync(join(folder, 'user_key.pub')));
  chmodSync(join(folder, 'authorized_keys'), 0o644); // the other user's too, whatever the umask of the tests
  const user = request.account === undefined ? userInfo().username : makeAccount(home, request.account.shell ?? '/bin/sh');
  const port = await freePort();
  writeFileSync(join(folder, 'sshd_config'), sshdConfig(request, { folder, home, port }));
  const sshd = new Sshd(folder, port);
  onTestFinished(() => sshd.stop());
  await sshd.start();
  const cable = await layCable(port);
  const env = { AERIE_SSH: writeSsh(folder, user, cable.port, request.sshConfig ?? []) };
  return {
    ...{ target: 'gpu-box', env, home, user, folder, cable, port },
    log: () => sshd.log(),
    stop: () => sshd.stop(),
    start: () => sshd.start(),
  };
}

class Sshd {
  readonly #folder: string;
  readonly #port: number;
  #child: ChildProcess | undefined;
  #said = '';

  constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  log(): string {
    return this.#said;
  }

  /** The shell around it ends it when this process is killed. */
  async start(): Promise<void> {
    const script = `${SSHD} -D -e -f "$1" & cat >/dev/null; kill $!`;
    const child = spawn('sh', ['-c', script, 'sh', join(this.#folder, 'sshd_config')], { stdio: ['pipe', 'ignore', 'pipe'] });
    child.stdin.on('error', () => undefined);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text;
    });
    this.#child = child;
    await until(async () => {
      if (this.#pid() === undefined && /Bind to port|fatal|Bad configuration|Unsupported/.test(this.#said))
        throw new Error(`sshd did not start:\n${this.#said}`);
      return (await greetingOf(this.#port)).startsWith('SSH-2.0');
    });
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const pid = this.#pid();
    const sessions = pid === undefined ? [] : childrenOf(pid).flatMap((monitor) => [monitor, ...childrenOf(monitor)]);
    for (const one of pid === undefined ? [] : [pid, ...sessions]) endProcess(one);
    child.stdin?.end();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    await until(() => ![pid ?? 0, ...sessions].some(isAlive));
    rmSync(join(this.#folder, 'sshd.pid'), { force: true });
  }

  #pid(): number | undefined {
    const file = join(this.#folder, 'sshd.pid');
    return existsSync(file) ? Number(readFileSync(file, 'utf8')) || undefined : undefined;
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended meanwhile
  }
}

interface Place {
  readonly folder: string;
  readonly home: string;
  readonly port: number;
}

function sshdConfig({ maxSessions = 10, env = {}, sshdConfig = [] }: SshdRequest, { folder, home, port }: Place): string {
  const set = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: home, ...env };
  return [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${folder}/host_key`,
    `PidFile ${folder}/sshd.pid`,
    `AuthorizedKeysFile ${folder}/authorized_keys`,
    'StrictModes no', // the keys lie below /tmp
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'UseDNS no',
    'PrintMotd no',
    'LogLevel VERBOSE',
    'MaxStartups 200:30:400', // many connections at once are no attack here
    `MaxSessions ${maxSessions}`,
    ...sshdConfig,
    // One line only: sshd takes the first. A quote inside of quotes is written with a backslash.
    `SetEnv ${Object.entries(set)
      .map(([name, value]) => `"${name}=${value.replaceAll(/["\\]/g, '\\$&')}"`)
      .join(' ')}`,
    '',
  ].join('\n');
}

/** The program for AERIE_SSH. */
function writeSsh(folder: string, user: string, port: number, more: readonly string[]): string {
  writeFileSync(join(folder, 'known_hosts'), `gpu-box ${readFileSync(join(folder, 'host_key.pub'), 'utf8')}`);
  const lines = [
    'Host gpu-box',
    ...more,
    'HostName 127.0.0.1',
    `Port ${port}`,
    `User ${user}`,
    'HostKeyAlias gpu-box',
    `IdentityFile ${folder}/user_key`,
    'IdentitiesOnly yes',
    'IdentityAgent none',
    `UserKnownHostsFile ${folder}/known_hosts`,
    'GlobalKnownHostsFile /dev/null',
    'StrictHostKeyChecking yes',
  ];
  writeFileSync(join(folder, 'ssh_config'), `${lines.join('\n  ')}\n`);
  const program = join(folder, 'ssh');
  writeFileSync(program, `#!/bin/sh\nexec ssh -F '${folder}/ssh_config' "$@"\n`, { mode: 0o755 });
  return program;
}

function makeAccount(home: string, shell: string): string {
  const name = `aerie-${randomBytes(4).toString('hex')}`;
  // Two tests may make one at the same time: useradd waits for the lock of /etc/passwd, 15 s.
  execFileSync('useradd', ['--no-create-home', '--no-log-init', '--home-dir', home, '--shell', shell, '--password', '*', name]);
  onTestFinished(() => void execFileSync('userdel', ['--force', name], { stdio: 'ignore' }));
  const [uid = 0, gid = 0] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' })));
  chownSync(home, uid, gid);
  return name;
}

/** The first line that whoever listens there says; '' = nobody does. */
function greetingOf(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.setTimeout(2_000, () => socket.destroy());
    socket.once('data', (bytes) => {
      resolve(bytes.toString('latin1'));
      socket.destroy();
    });
    socket.on('error', () => undefined).once('close', () => resolve(''));
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port;
}
