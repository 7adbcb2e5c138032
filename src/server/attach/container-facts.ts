/**
 * What `docker inspect` says of a container, how its server is reached, and how it ended. Pure. The text comes from another program, its labels and
 * names from anybody: what has another shape than expected is left out.
 */
import { portIn } from '../../engine/launching.ts';
import { sayEnd } from '../../machine/contained/inside.ts';
import { readEngine } from '../../machine/survey/find-engines.ts';
import { flagsOfCommand } from './command-words.ts';

export interface ContainerFacts {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  /** `running`, `exited`, `created` … */
  readonly state: string;
  /** Of its first process, in the host's numbers; 0 = it does not run. */
  readonly pid: number;
  readonly exitCode: number;
  /** The kernel killed it for lack of memory, as docker saw it. */
  readonly isOutOfMemory: boolean;
  /** RFC 3339, as docker writes it. */
  readonly startedAt: string;
  readonly finishedAt: string;
  /** `bridge`, `host`, `container:ID`, or the name of a network. */
  readonly network: string;
  /** In its network; '' = it has none of its own. */
  readonly address: string;
  readonly ports: readonly PublishedPort[];
  /** Path and arguments of its first process. Secrets may stand in them. */
  readonly words: readonly string[];
  /** '' = its log is no file. */
  readonly logPath: string;
  readonly logDriver: string;
}

export interface PublishedPort {
  readonly containerPort: number;
  /** Where it is published on the host. */
  readonly hostAddress: string;
  readonly hostPort: number;
}

/** The first of the list that `docker inspect` prints; undefined where it is none. */
export function parseInspection(text: string): ContainerFacts | undefined {
  const [first] = arrayOf(parse(text));
  const at = (...path: readonly string[]) => path.reduce<unknown>((value, key) => objectOf(value)[key], first);
  const id = textOf(at('Id'));
  if (!/^[0-9a-f]{12,64}$/.test(id)) return undefined;
  const networks = Object.values(objectOf(at('NetworkSettings', 'Networks')));
  const addresses = [at('NetworkSettings', 'IPAddress'), ...networks.map((one) => objectOf(one)['IPAddress'])];
  return {
    id,
    name: textOf(at('Name')).replace(/^\//, ''),
    image: textOf(at('Config', 'Image')),
    state: textOf(at('State', 'Status')),
    pid: countOf(at('State', 'Pid')),
    exitCode: countOf(at('State', 'ExitCode')),
    isOutOfMemory: at('State', 'OOMKilled') === true,
    startedAt: textOf(at('State', 'StartedAt')),
    finishedAt: textOf(at('State', 'FinishedAt')),
    network: textOf(at('HostConfig', 'NetworkMode')),
    address: addresses.map(textOf).find(isAddress) ?? '',
    ports: portsOf(objectOf(at('NetworkSettings', 'Ports'))),
    words: [at('Path'), ...arrayOf(at('Args'))].map(textOf),
    logPath: textOf(at('LogPath')),
    logDriver: textOf(at('HostConfig', 'LogConfig', 'Type')),
  };
}

/** Ids in lines `ID 0.0.0.0:8000->8000/tcp, 127.0.0.1:9000-9001->9000-9001/tcp`, as `docker ps` prints them, that publish a port of the host. */
export function publishersOf(listed: string, port: number): string[] {
  return listed.split('\n').flatMap((line) => {
    const [, id = '', ports = ''] = /^([0-9a-f]{64}) (.*)$/.exec(line) ?? [];
    const isPublished = [...ports.matchAll(/:(\d+)(?:-(\d+))?->[\d-]+\/tcp/g)].some(
      ([, first, last = first]) => port >= Number(first) && port <= Number(last),
    );
    return isPublished ? [id] : [];
  });
}

/** Where the server of a container listens, as its machine reaches it. */
export type ContainerAddress =
  | { readonly kind: 'reached'; readonly port: number; readonly address: string; readonly how: 'published' | 'host' | 'own' }
  | { readonly kind: 'unknown'; readonly because: string };

/** The port that the engine takes where nobody says another: SGLang 30000, vLLM 8000. */
export const USUAL_PORT = { sglang: 30_000, vllm: 8_000 } as const;

/** `asked`: the port that its server listens on inside, from its command line; 0 = not said there. */
export function addressOf(container: ContainerFacts, asked: number, usual: number): ContainerAddress {
  const { name, state, ports, network, address } = container;
  if (state !== 'running') return { kind: 'unknown', because: `container ${name} is ${state === '' ? 'not running' : state}` };
  const wanted = asked > 0 ? asked : usual;
  // One that publishes a single port publishes that of its server.
  const published =
    ports.find(({ containerPort }) => containerPort === wanted) ?? (asked === 0 && ports.length === 1 ? ports[0] : undefined);
  if (published !== undefined)
    return { kind: 'reached', port: published.hostPort, address: loopbackOf(published.hostAddress), how: 'published' };
  if (network === 'host') return { kind: 'reached', port: wanted, address: '127.0.0.1', how: 'host' };
  if (address !== '') return { kind: 'reached', port: wanted, address, how: 'own' };
  return {
    kind: 'unknown',
    because: `container ${name} publishes no port ${wanted}, is not in the host's network, and has no address of its own`,
  };
}

/** Where its server listens: by the port of its command line, else the engine's usual one. */
export function serverAddressOf(container: ContainerFacts, engine: keyof typeof USUAL_PORT): ContainerAddress {
  return addressOf(container, portIn(flagsOfCommand(container.words)) ?? 0, USUAL_PORT[engine]);
}

/** Its command line or what it publishes says where its server listens. */
export function isPortTold({ words, ports }: ContainerFacts): boolean {
  return portIn(flagsOfCommand(words)) !== undefined || readEngine(words) !== undefined || ports.length === 1;
}

/** By its command line, else by the name of its image. */
export function engineOfContainer({ words, image }: ContainerFacts): keyof typeof USUAL_PORT | undefined {
  const named = /sglang/.test(image) ? 'sglang' : /vllm/.test(image) ? 'vllm' : undefined;
  return readEngine(words)?.engine ?? named;
}

/** How it ended; undefined: it has not, or has not begun. */
export function endOfContainer(
  container: Pick<ContainerFacts, 'name' | 'state' | 'exitCode' | 'isOutOfMemory' | 'finishedAt'>,
): ContainerEnd | undefined {
  const { name, state, exitCode, isOutOfMemory, finishedAt } = container;
  if (state !== 'exited' && state !== 'dead') return undefined;
  const end = sayEnd({ name: `container ${name}`, exitStatus: exitCode, isOutOfMemory, says: finishedAt });
  return { ...end, exitStatus: exitCode };
}

export interface ContainerEnd {
  readonly says: string;
  readonly isOutOfMemory: boolean;
  readonly exitStatus: number;
}

/** Published on every address is published on the loopback too. */
function loopbackOf(address: string): string {
  return address === '' || address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address;
}

function portsOf(published: Readonly<Record<string, unknown>>): PublishedPort[] {
  return Object.entries(published).flatMap(([key, bindings]) => {
    const containerPort = Number(/^(\d+)\/tcp$/.exec(key)?.[1] ?? 0);
    return arrayOf(bindings).flatMap((binding) => {
      const { HostIp: hostAddress, HostPort: hostPort } = objectOf(binding);
      const port = Number(textOf(hostPort));
      const isPort = Number.isInteger(port) && port > 0 && port < 65_536 && containerPort > 0;
      return isPort ? [{ containerPort, hostAddress: textOf(hostAddress), hostPort: port }] : [];
    });
  });
}

/** An address, and nothing that a program could take for an option. */
function isAddress(text: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) || /^[0-9a-f]*:[0-9a-f:]+$/i.test(text);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
