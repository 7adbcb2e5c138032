/**
 * A docker of one folder, as a program on PATH, for machines where the real one does not run: `AERIE_FAKE_DOCKER=FOLDER node fake-docker.mjs run …`.
 * Containers are real processes in sessions of their own, with the container's environment and nothing of the client's; logs are
 * files as docker's json-file driver writes them; words and exit statuses are the real client's (28.2).
 *
 * What it is not: no namespaces (pids are the host's, the network and the files too), images are a command line in `images.json`,
 * and those of `registry.json` come from there first, in as much time as each layer takes.
 * As in a pid namespace, the first process hears no signal that it has no handler for, and its end is the end of all.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, openSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isRunning, openState, statusOf } from './fake-docker/containers.mjs';
import { tellLog } from './fake-docker/logs.mjs';
import { options } from './fake-docker/options.mjs';
import { parseRun, refusal } from './fake-docker/run-options.mjs';
import { fill, inspectionOf, rowOf } from './fake-docker/show.mjs';
import { signalFirst, signalNamed } from './fake-docker/signals.mjs';

const SUPERVISOR = fileURLToPath(new URL('./fake-docker/supervise.mjs', import.meta.url));
const state = openState(process.env['AERIE_FAKE_DOCKER'] ?? '');
const print = (line) => process.stdout.write(`${line}\n`);

async function run(words) {
  const asked = parseRun(words);
  await pull(asked.image);
  const id = randomBytes(32).toString('hex');
  const container = create(id, asked);
  if (asked.idFile !== undefined) {
    if (existsSync(asked.idFile))
      throw refusal(`container ID file found, make sure the other container isn't running or delete ${asked.idFile}`);
    writeFileSync(asked.idFile, id);
  }
  state.write(id, 'asked.json', container);
  const log = openSync(state.logPathOf(id), 'a+'); // before anything can remove it
  // The daemon's child and not the client's: it has none of the client's environment, session or files.
  spawn(process.execPath, [SUPERVISOR, state.folder, id], {
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    stdio: 'ignore',
    detached: true,
  }).unref();
  if (!asked.isDetached) for (const signal of PROXIED) process.on(signal, () => void proxy(signal, id, asked.proxiesSignals));
  while (state.containerOf(id)?.started === undefined && state.exitOf(id) === undefined) await delay(10);
  const failed = state.containerOf(id)?.started === undefined ? state.exitOf(id) : undefined;
  if (failed?.error) throw refusal(`docker: Error response from daemon: ${failed.error}`, failed.code);
  if (asked.isDetached) return void print(id);
  await tellLog(log, { isOver: () => state.exitOf(id) !== undefined });
  process.exitCode = state.exitOf(id).code;
}

/** In the words of a client without a terminal: what comes is told layer by layer. An image that no registry has is not there. */
async function pull(name) {
  const { layers = [], image } = state.registry()[name] ?? {};
  if (image === undefined || state.images()[name] !== undefined) return;
  const [repository, tag = 'latest'] = name.split(':');
  const told = (line) => process.stderr.write(`${line}\n`);
  told(`Unable to find image '${repository}:${tag}' locally`);
  told(`${tag}: Pulling from ${repository}`);
  const names = layers.map((_, at) => at.toString(16).padStart(12, '0'));
  for (const layer of names) told(`${layer}: Pulling fs layer`);
  for (const [at, ms] of layers.entries()) {
    await delay(ms);
    told(`${names[at]}: Download complete`);
    told(`${names[at]}: Pull complete`);
  }
  told(`Digest: sha256:${randomBytes(32).toString('hex')}`);
  told(`Status: Downloaded newer image for ${repository}:${tag}`);
  state.addImage(name, image);
}

function create(id, asked) {
  const image = state.images()[asked.image];
  if (image === undefined)
    throw refusal(
      `Unable to find image '${asked.image}' locally\ndocker: Error response from daemon: pull access denied for ${asked.image}, repository does not exist or may require 'docker login'`,
    );
  const name = asked.name ?? `fake_${id.slice(0, 8)}`;
  const other = state.all().find((one) => one.name === name);
  if (other !== undefined)
    throw refusal(
      `docker: Error response from daemon: Conflict. The container name "/${name}" is already in use by container "${other.id}". ` +
        'You have to remove (or rename) that container to be able to reuse that name.',
    );
  return {
    ...asked,
    name,
    created: new Date().toISOString().replace('Z', '000000Z'),
    entrypointWords:
      asked.entrypoint === undefined ? (image.entrypoint ?? []) : asked.entrypoint === '' ? [] : [asked.entrypoint],
    command: asked.command.length > 0 || asked.entrypoint !== undefined ? asked.command : (image.command ?? []),
    workFolder: asked.workFolder ?? image.workFolder ?? '/',
    stopSignal: asked.stopSignal ?? image.stopSignal ?? 'SIGTERM',
    env: [
      `PATH=${image.path ?? process.env['PATH']}`,
      `HOSTNAME=${id.slice(0, 12)}`,
      'HOME=/root',
      ...(image.env ?? []),
      ...asked.env,
    ],
  };
}

/** As the real client does for every signal that it can hear. A signal before the start ends the client alone. */
const PROXIED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
async function proxy(signal, id, isProxied) {
  const container = state.containerOf(id);
  if (!isProxied || container === undefined || !isRunning(container)) process.exit(128 + constants.signals[signal]);
  signalFirst(container, signal);
}

const forEach = (names, act) => Promise.all(names.map(async (name) => act(state.find(name), name)));

function running(container, verb) {
  if (!isRunning(container))
    throw refusal(
      `Error response from daemon: cannot ${verb} container: ${container.name}: container ${container.id} is not running`,
      1,
    );
  return container;
}

async function kill(words) {
  const { names, signal = ['KILL'] } = options(words, { s: 'signal', signal: 'signal' });
  await forEach(names, (container, name) => {
    signalFirst(running(container, 'kill'), signalNamed(signal[0]));
    print(name);
  });
}

/** A container that is stopped already is no error. */
async function stop(words) {
  const {
    names,
    seconds = ['10'],
    signal,
  } = options(words, {
    ...{ t: 'seconds', time: 'seconds', timeout: 'seconds' },
    ...{ s: 'signal', signal: 'signal' },
  });
  await forEach(names, async (container, name) => {
    if (isRunning(container)) {
      signalFirst(container, signalNamed(signal?.[0] ?? container.stopSignal));
      if (!(await ended(container, Number(seconds[0]) * 1000))) signalFirst(container, 'SIGKILL');
      await ended(container, Infinity);
    }
    print(name);
  });
}

async function ended({ id }, withinMs) {
  const deadline = performance.now() + withinMs;
  while (state.exitOf(id) === undefined) {
    if (performance.now() > deadline) return false;
    await delay(20);
  }
  return true;
}

async function remove(words) {
  const { names, ...given } = options(words, {}, ['f', 'force', 'v', 'volumes']);
  await forEach(names, async (container, name) => {
    if (isRunning(container)) {
      if (!(given.f || given.force))
        throw refusal(
          `Error response from daemon: cannot remove container "/${container.name}": container is running: stop the container before removing or force remove`,
          1,
        );
      signalFirst(container, 'SIGKILL');
      await ended(container, Infinity);
    }
    state.remove(container.id);
    print(name);
  });
}

async function wait(words) {
  await forEach(words, async (container) => {
    await ended(container, Infinity);
    print(state.exitOf(container.id).code);
  });
}

function ps(words) {
  const {
    filter = [],
    format,
    ...given
  } = options(words, { f: 'filter', filter: 'filter', format: 'format' }, [...['a', 'all', 'q', 'quiet', 'no-trunc']]);
  const statuses = filter.filter((one) => one.startsWith('status='));
  const rows = state
    .all()
    .filter((one) => given.a || given.all || statuses.length > 0 || isRunning(one))
    .filter((one) => filter.every((text) => matches(one, text)))
    .map((one) => rowOf(one, given['no-trunc'] === true));
  if (given.q || given.quiet) for (const row of rows) print(row.ID);
  else if (format !== undefined && format[0] !== 'table') for (const row of rows) print(fill(format[0], row));
  else {
    print('CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS   PORTS   NAMES');
    for (const row of rows) print([row.ID, row.Image, row.Command, row.CreatedAt, row.Status, row.Ports, row.Names].join('   '));
  }
}

/** `name` is a pattern that may stand anywhere in the name, with or without its slash; `label` a key, or a key and its value. */
function matches(container, filter) {
  const equals = filter.indexOf('=');
  const [key, value] = [filter.slice(0, equals), filter.slice(equals + 1)];
  if (key === 'name') return new RegExp(value).test(container.name) || new RegExp(value).test(`/${container.name}`);
  if (key === 'id') return container.id.startsWith(value);
  if (key === 'status') return statusOf(container) === value;
  if (key === 'ancestor') return container.image === value;
  if (key !== 'label') throw refusal(`Error response from daemon: invalid filter '${key}'`, 1);
  const [name, ...rest] = value.split('=');
  return rest.length === 0 ? name in container.labels : container.labels[name] === rest.join('=');
}

function inspect(words) {
  const { names, format } = options(words, { f: 'format', format: 'format', type: 'type' }, ['s', 'size']);
  const found = [];
  let missing;
  for (const name of names) {
    try {
      found.push(inspectionOf(state.find(name, 'No such object')));
    } catch (error) {
      missing ??= refusal(error.message.replace('Error response from daemon: No', 'Error: No'), 1);
    }
  }
  if (format === undefined) print(JSON.stringify(found, undefined, 4));
  else for (const one of found) print(fill(format[0], one));
  if (missing !== undefined) throw missing;
}

async function logs(words) {
  const { names, since, until, tail, ...given } = options(words, { since: 'since', until: 'until', tail: 'tail', n: 'tail' }, [
    'f',
    'follow',
    't',
    'timestamps',
    'details',
  ]);
  const container = state.find(names[0] ?? '');
  if (container.logDriver === 'none')
    throw refusal('Error response from daemon: configured logging driver does not support reading', 1);
  if (!existsSync(container.logPath)) return;
  const follows = given.f || given.follow;
  await tellLog(openSync(container.logPath, 'r'), {
    ...{ since: since?.[0], until: until?.[0], stamps: given.t || given.timestamps },
    tail: /^\d+$/.test(tail?.[0] ?? '') ? Number(tail[0]) : Infinity,
    isOver: () => !follows || state.exitOf(container.id) !== undefined,
  });
}

/** Its processes, as the host sees them. */
async function top(words) {
  const [name = '', ...columns] = words;
  const { started } = running(state.find(name), 'top');
  const args = columns.length === 0 ? ['-ef'] : columns;
  const ps = spawn(
    'ps',
    [...args, '--forest', '-s', String(started.pid)].filter((arg) => arg !== '-ef').concat(columns.length === 0 ? ['-f'] : []),
    {
      stdio: 'inherit',
    },
  );
  await new Promise((done) => ps.once('close', done));
}

/** `docker image inspect NAME` alone. */
function image([verb, name = '']) {
  if (verb !== 'inspect') throw refusal(`docker: unknown command: docker image ${verb}`, 1);
  if (state.images()[name] === undefined) throw refusal(`[]\nError response from daemon: No such image: ${name}`, 1);
  print('[]');
}

function version(words) {
  const { format } = options(words, { f: 'format', format: 'format' });
  const told = { Client: { Version: '28.2.2', ApiVersion: '1.50' }, Server: { Version: '28.2.2', ApiVersion: '1.50' } };
  print(format === undefined ? `Client:\n Version:  28.2.2\nServer:\n Version:  28.2.2` : fill(format[0], told));
}

const COMMANDS = { run, kill, stop, rm: remove, wait, ps, inspect, logs, top, image, version };
const DAEMON_WORDS = {
  down: 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
  denied: 'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock',
};

const [first = '', ...others] = process.argv.slice(2);
const [verb, words] = first === 'container' ? [others[0] ?? '', others.slice(1)] : [first, others];
state.noteCall(process.argv.slice(2));
try {
  const said = DAEMON_WORDS[state.daemon()];
  if (said !== undefined) throw refusal(verb === 'run' ? `docker: ${said}` : said, verb === 'run' ? 125 : 1);
  const command = COMMANDS[verb === 'ls' || verb === 'list' ? 'ps' : verb];
  if (command === undefined) throw refusal(`docker: unknown command: docker ${verb}`, 1);
  await command(words);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = Number.isInteger(error.code) ? error.code : 1;
}
