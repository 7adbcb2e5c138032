/**
 * What stands above a container's first process, as containerd's shim does: `node supervise.mjs STATE ID`. It starts the command in
 * a session of its own with the container's environment alone, writes its output as docker's json-file driver does, forwards
 * published ports, and when the first process ends it ends everything else of its session, as the end of a pid namespace does.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { constants } from 'node:os';
import { openState } from './containers.mjs';

const MOST_OF_A_LINE = 16 * 1024;
const [, , folder, id] = process.argv;
const state = openState(folder);
const container = state.containerOf(id);
const log = openSync(state.logPathOf(id), 'a');

const ports = await Promise.all(container.published.filter(({ protocol }) => protocol === 'tcp').map(publish)).catch((error) => {
  end({ code: 125, error: `Bind for ${error.address}:${error.port} failed: port is already allocated` });
});
const [file, ...args] = [...container.entrypointWords, ...container.command];
const child = spawn(file, args, {
  cwd: container.workFolder,
  env: Object.fromEntries(container.env.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)])),
  stdio: ['ignore', 'pipe', 'pipe'],
  detached: true,
});
child.on('error', () => end({ code: 127, error: `exec: "${file}": executable file not found in $PATH: unknown.` }));
child.on('spawn', () => {
  enterCgroup(child.pid);
  state.write(id, 'started.json', { pid: child.pid, at: stamp(), ports });
});
for (const name of ['stdout', 'stderr']) follow(child[name], name);
// `exit` and not `close`: a child that outlives the first process would hold the pipes, and is ended here.
child.on('exit', (code, signal) => {
  endSession(child.pid);
  const drained = Promise.all(
    [child.stdout, child.stderr].map((stream) => stream.closed || new Promise((done) => stream.once('close', done))),
  );
  void drained.then(() => end({ code: code ?? 128 + (constants.signals[signal] ?? 0), error: '' }));
});

/** Where the container's port is another one than the host's. Where they are one, it is there already: nothing has a network of its own here. */
async function publish({ address, hostPort, containerPort, protocol }) {
  if (hostPort === containerPort) return { address, hostPort, containerPort, protocol };
  const server = createServer((socket) => {
    const onward = connect(containerPort, '127.0.0.1');
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ])
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
    socket.pipe(onward).pipe(socket);
  });
  await new Promise((done, fail) => server.once('error', fail).listen(hostPort, '127.0.0.1', done));
  return { address, hostPort: server.address().port, containerPort, protocol };
}

/**
 * One entry for each line, `{"log":"…\n","stream":"stdout","time":"…"}`. As docker does it, a line of more than 16 KiB is several entries, of
 * which the last one ends in the newline, and a rest without one is an entry when the stream ends.
 */
function follow(stream, name) {
  let rest = Buffer.alloc(0);
  const write = (bytes) =>
    appendFileSync(log, `${JSON.stringify({ log: bytes.toString('utf8'), stream: name, time: stamp() })}\n`);
  stream.on('data', (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const newline = rest.indexOf(0x0a);
      const length = newline >= 0 && newline < MOST_OF_A_LINE ? newline + 1 : rest.length > MOST_OF_A_LINE ? MOST_OF_A_LINE : 0;
      if (length === 0) return;
      write(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  });
  stream.on('end', () => rest.length > 0 && write(rest));
}

/** RFC 3339 with nanoseconds, never the same twice. */
function stamp() {
  stamp.count = ((stamp.count ?? 0) + 1) % 1_000_000;
  return new Date().toISOString().replace('Z', `${String(stamp.count).padStart(6, '0')}Z`);
}

function endSession(session) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]) === session) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // it has ended between two looks
    }
  }
}

/** The cgroup names the container, as the real one does, where this user may make one. */
function enterCgroup(pid) {
  try {
    mkdirSync(`/sys/fs/cgroup/systemd/docker/${id}`, { recursive: true });
    writeFileSync(`/sys/fs/cgroup/systemd/docker/${id}/cgroup.procs`, String(pid));
  } catch {
    // without: `docker inspect` still says its pid
  }
}

function leaveCgroup() {
  for (const path of [`/sys/fs/cgroup/systemd/docker/${id}`, '/sys/fs/cgroup/systemd/docker']) {
    try {
      rmdirSync(path);
    } catch {
      // never made, or others are in it
    }
  }
}

function end({ code, error }) {
  closeSync(log);
  leaveCgroup();
  state.write(id, 'ended.json', { code, error, at: stamp() });
  if (container.isRemoved) state.remove(id);
  state.noteExit(id, { code, error });
  process.exit(0);
}
