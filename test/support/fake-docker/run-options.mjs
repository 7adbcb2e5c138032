/** `docker run [OPTIONS] IMAGE [COMMAND] [ARG…]` → what is asked, as the real client reads it. Throws words where it would refuse. */
import { readFileSync } from 'node:fs';

/** Options that take no value; every other one takes the next word, or what stands after its `=`. */
const SWITCHES = new Set(
  'd detach i interactive t tty rm init privileged P publish-all q quiet read-only no-healthcheck oom-kill-disable sig-proxy help'.split(
    ' ',
  ),
);
const LONG = { d: 'detach', e: 'env', i: 'interactive', t: 'tty', p: 'publish', l: 'label', v: 'volume', w: 'workdir' };
const REST = { h: 'hostname', u: 'user', m: 'memory', c: 'cpu-shares', a: 'attach', P: 'publish-all', q: 'quiet' };
/** Of the real client, and without effect here. */
const PASSED_OVER = new Set(
  `shm-size ipc ulimit volume mount device cap-add cap-drop security-opt hostname user memory memory-swap cpus cpu-shares cpuset-cpus
   cpuset-mems pid platform pull restart runtime group-add add-host dns tmpfs userns uts attach expose log-opt network-alias
   oom-score-adj pids-limit sysctl annotation stop-timeout mac-address ip cgroupns`.split(/\s+/),
);
const KNOWN = new Set(
  'env env-file label label-file name network net publish gpus cidfile workdir entrypoint stop-signal log-driver'.split(' '),
);

export function parseRun(words) {
  const given = {};
  const switches = new Set();
  let at = 0;
  for (; at < words.length && words[at].startsWith('-'); at += 1) {
    if (words[at] === '--') {
      at += 1;
      break;
    }
    for (const { name, value, takesNext } of readOption(words[at])) {
      if (SWITCHES.has(name)) {
        if (value !== 'false') switches.add(name);
        else if (name === 'sig-proxy') switches.add('no-sig-proxy');
        continue;
      }
      if (!KNOWN.has(name) && !PASSED_OVER.has(name)) throw refusal(`unknown flag: --${name}`);
      if (takesNext) at += 1;
      const text = takesNext ? words[at] : value;
      if (text === undefined) throw refusal(`flag needs an argument: --${name}`);
      given[name] = [...(given[name] ?? []), text];
    }
  }
  const [image, ...command] = words.slice(at);
  if (image === undefined) throw refusal("'docker run' requires at least 1 argument");
  const last = (name) => given[name]?.at(-1);
  return {
    image,
    command,
    name: last('name'),
    isDetached: switches.has('detach'),
    isRemoved: switches.has('rm'),
    hasInit: switches.has('init'),
    proxiesSignals: !switches.has('no-sig-proxy'),
    network: last('network') ?? last('net') ?? 'bridge',
    published: (given['publish'] ?? []).map(parsePublish),
    env: [...(given['env-file'] ?? []).flatMap(readEnvFile), ...(given['env'] ?? [])].flatMap(fromClient),
    labels: Object.fromEntries([...(given['label-file'] ?? []).flatMap(linesOf), ...(given['label'] ?? [])].map(splitPair)),
    gpus: last('gpus') ?? '',
    volumes: given['volume'] ?? [],
    idFile: last('cidfile'),
    workFolder: last('workdir'),
    entrypoint: last('entrypoint'),
    stopSignal: last('stop-signal'),
    logDriver: last('log-driver') ?? 'json-file',
    ipc: last('ipc') ?? 'private',
    restart: last('restart') ?? 'no',
  };
}

/** `--name=x`, `--name x`, `-e X=1`, `-eX=1`, `-it`. */
function readOption(word) {
  if (word.startsWith('--')) {
    const equals = word.indexOf('=');
    const name = word.slice(2, equals < 0 ? undefined : equals);
    return [{ name, value: equals < 0 ? undefined : word.slice(equals + 1), takesNext: equals < 0 }];
  }
  const found = [];
  for (let at = 1; at < word.length; at += 1) {
    const letter = word[at];
    const name = LONG[letter] ?? REST[letter];
    if (name === undefined) throw refusal(`unknown shorthand flag: '${letter}' in ${word}`);
    if (SWITCHES.has(name)) {
      found.push({ name, value: undefined, takesNext: false });
      continue;
    }
    const rest = word.slice(at + 1).replace(/^=/, '');
    return [...found, { name, value: rest, takesNext: rest === '' }];
  }
  return found;
}

/** `[ADDRESS:][HOST:]CONTAINER[/tcp]`; without HOST a free port is taken. */
function parsePublish(text) {
  const match = /^(?:(?:(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):)?(\d*):)?(\d+)(?:\/(tcp|udp))?$/.exec(text);
  if (match === null) throw refusal(`invalid containerPort: ${text}`);
  const [, address = '0.0.0.0', host = '', container, protocol = 'tcp'] = match;
  return { address, hostPort: Number(host), containerPort: Number(container), protocol };
}

const linesOf = (path) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));

function readEnvFile(path) {
  try {
    return linesOf(path);
  } catch {
    throw refusal(`open ${path}: no such file or directory`);
  }
}

/** `NAME` alone is the client's own value, and nothing where it has none. */
function fromClient(pair) {
  if (pair.includes('=')) return [pair];
  return process.env[pair] === undefined ? [] : [`${pair}=${process.env[pair]}`];
}

function splitPair(pair) {
  const equals = pair.indexOf('=');
  return equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
}

/** The client's own refusals end with 125. */
export function refusal(words, code = 125) {
  return Object.assign(new Error(words), { code });
}
