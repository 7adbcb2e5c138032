/** What `docker inspect` and `docker ps` print: the fields of the real ones that people and programs read. */
import { createHash } from 'node:crypto';
import { isRunning, statusOf } from './containers.mjs';
import { refusal } from './run-options.mjs';

const NEVER = '0001-01-01T00:00:00Z';

export function inspectionOf(container) {
  const { id, name, created, image, command, entrypointWords, network, started, ended } = container;
  const ports = portsOf(container);
  const isHost = network === 'host';
  // The loopback stands for the address that a container would have in docker's network.
  const own = { IPAddress: isRunning(container) && !isHost ? '127.0.0.1' : '', Gateway: '', NetworkID: '' };
  const [path = '', ...args] = [...entrypointWords, ...command];
  return {
    Id: id,
    Created: created,
    Path: path,
    Args: args,
    State: {
      Status: statusOf(container),
      Running: isRunning(container),
      Paused: false,
      Restarting: false,
      OOMKilled: container.isOutOfMemory,
      Dead: false,
      Pid: isRunning(container) ? started.pid : 0,
      ExitCode: ended?.code ?? 0,
      Error: ended?.error ?? '',
      StartedAt: started?.at ?? NEVER,
      FinishedAt: ended?.at ?? NEVER,
    },
    Image: `sha256:${createHash('sha256').update(image).digest('hex')}`,
    LogPath: container.logDriver === 'json-file' ? container.logPath : '',
    Name: `/${name}`,
    RestartCount: 0,
    Driver: 'overlay2',
    Platform: 'linux',
    HostConfig: {
      Binds: container.volumes.length === 0 ? null : container.volumes,
      LogConfig: { Type: container.logDriver, Config: {} },
      NetworkMode: network,
      PortBindings: Object.fromEntries(
        container.published.map(({ address, hostPort, containerPort, protocol }) => [
          `${containerPort}/${protocol}`,
          [{ HostIp: address === '0.0.0.0' ? '' : address, HostPort: hostPort === 0 ? '' : String(hostPort) }],
        ]),
      ),
      RestartPolicy: { Name: container.restart, MaximumRetryCount: 0 },
      AutoRemove: container.isRemoved,
      IpcMode: container.ipc,
      Init: container.hasInit,
      DeviceRequests:
        container.gpus === '' ? null : [{ Driver: '', Count: -1, DeviceIDs: null, Capabilities: [['gpu']], Options: {} }],
    },
    Mounts: [],
    Config: {
      Hostname: id.slice(0, 12),
      User: '',
      Tty: false,
      Env: container.env,
      Cmd: command.length === 0 ? null : command,
      Image: image,
      WorkingDir: container.workFolder,
      Entrypoint: entrypointWords.length === 0 ? null : entrypointWords,
      Labels: container.labels,
      StopSignal: container.stopSignal,
    },
    NetworkSettings: {
      Ports: isRunning(container) && !isHost ? ports : {},
      IPAddress: network === 'bridge' ? own.IPAddress : '',
      Networks: { [network]: own },
    },
  };
}

function portsOf({ started }) {
  const ports = {};
  for (const { address, hostPort, containerPort, protocol } of started?.ports ?? []) {
    const key = `${containerPort}/${protocol}`;
    ports[key] = [...(ports[key] ?? []), { HostIp: address, HostPort: String(hostPort) }];
  }
  return ports;
}

export function rowOf(container, isWhole) {
  const { id, name, image, entrypointWords, command, created, started, ended, labels, published, network } = container;
  const ports = network === 'host' ? [] : (started?.ports ?? published);
  return {
    ID: isWhole ? id : id.slice(0, 12),
    Names: name,
    Image: image,
    Command: `"${cut([...entrypointWords, ...command].join(' '), isWhole ? Infinity : 20)}"`,
    CreatedAt: `${created.slice(0, 19).replace('T', ' ')} +0000 UTC`,
    State: statusOf(container),
    Status: isRunning(container) ? 'Up' : ended === undefined ? 'Created' : `Exited (${ended.code})`,
    Labels: Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
    Ports: isRunning(container)
      ? ports.map((port) => `${port.address}:${port.hostPort}->${port.containerPort}/${port.protocol}`).join(', ')
      : '',
    Networks: network,
    Label: (key) => labels[key] ?? '',
  };
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** `{{.State.Pid}}`, `{{json .Config.Labels}}`, `{{index .Config.Labels "a"}}`, `{{.Label "a"}}`; anything else of Go's templates is refused. */
export function fill(template, value) {
  if (template === 'json') return JSON.stringify(value);
  return template.replaceAll(/\{\{-?\s*(.*?)\s*-?\}\}/g, (_whole, inside) => {
    const [, json, path, key] = /^(json )?(\.[\w.]*)(?: "([^"]*)")?$/.exec(inside) ?? [];
    const index = /^index (\.[\w.]*) "([^"]*)"$/.exec(inside);
    if (index !== null) return String(at(value, index[1])?.[index[2]] ?? '');
    if (path === undefined) throw refusal(`template parsing error: this fake docker does not know {{${inside}}}`, 64);
    const found = at(value, path);
    const told = typeof found === 'function' ? found(key) : found;
    return json === undefined ? asGo(told) : JSON.stringify(told);
  });
}

const at = (value, path) =>
  path
    .split('.')
    .filter((part) => part !== '')
    .reduce((inner, part) => inner?.[part], value);

/** As Go prints it: `map[a:b]`, `[a b]`. */
function asGo(value) {
  if (Array.isArray(value)) return `[${value.map(asGo).join(' ')}]`;
  if (value === null || value === undefined) return '<no value>';
  if (typeof value !== 'object') return String(value);
  return `map[${Object.keys(value)
    .sort()
    .map((key) => `${key}:${asGo(value[key])}`)
    .join(' ')}]`;
}
