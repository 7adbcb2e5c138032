/** Why a `docker run …` or `srun …` cannot be a server's `command:`, each as a sentence that says what to write. Pure, over the file as written. */
import { type ClientCommand, hasSwitch, optionOf, readClientCommand, type UnreadableClient } from './client-command.ts';
import { valueAt } from './explain-issue.ts';
import type { Path, Problem } from './problem.ts';

export function checkClientCommand(file: unknown, server: Path): Problem[] {
  const at = (...keys: string[]) => valueAt(file, [...server, ...keys]);
  const [engine, command] = [at('engine'), at('command')];
  if ((engine !== 'sglang' && engine !== 'vllm') || at('attach') !== undefined || typeof command !== 'string') return [];
  const client = readClientCommand(command);
  if (client === undefined) return [];
  const problem = (message: string): Problem => ({ path: [...server, 'command'], at: 'value', message });
  return findProblems(client, textOf(at('flags', 'host')), Number(at('flags', 'port') ?? at('port') ?? 0)).map(problem);
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : String(value);
}

/** `host`: under `flags:`; undefined where it is not written. `port`: 0 = any. */
function findProblems(client: ClientCommand | UnreadableClient, host: string | undefined, port: number): string[] {
  if (client.kind === 'unreadable')
    return [
      `has ${client.client} in a place where Aerie cannot read it; it must be the whole command (behind sudo or assignments at most): ` +
        'write the lines before it under setup:',
    ];
  return client.kind === 'container' ? findContainerProblems(client, host, port) : findStepProblems(client, host);
}

function findContainerProblems(client: ClientCommand, host: string | undefined, port: number): string[] {
  const [image, program] = client.rest;
  const restart = optionOf(client, 'restart')?.value ?? 'no';
  const network = networkOf(client);
  const published = publishedAt(client, port);
  return [
    ...(image === undefined ? [`has no image; write ${client.client} … IMAGE python3 -m sglang.launch_server`] : []),
    ...(image !== undefined && program === undefined && !hasOwnProgram(client)
      ? [
          `ends with the image ${image}; write the launcher behind it, as python3 -m sglang.launch_server: Aerie appends its flags`,
        ]
      : []),
    ...(hasSwitch(client, 'detach')
      ? ['has -d; leave it out: log and exit status come from the client, and Aerie lets it outlive you by itself']
      : []),
    ...(hasSwitch(client, 'tty') ? ['has -t; leave it out (-i too): there is no terminal, and one would change the log'] : []),
    ...(restart === 'no'
      ? []
      : [`has --restart ${restart}; leave it out: Aerie starts a server again, with what its end asks for`]),
    ...(network === 'none' || network.startsWith('container:')
      ? [`has --network ${network}, where Aerie does not reach the server; leave it out, or write --network host`]
      : []),
    ...(published === undefined || published === port
      ? []
      : [
          `publishes port ${port} of the container as ${published || 'any port'}, and Aerie asks it at ${port}; leave that -p out: Aerie ` +
            'publishes the port on 127.0.0.1',
        ]),
    ...(hasOwnNetwork(client) && host !== undefined && LOOPBACKS.includes(host)
      ? [
          `has a network of its own, and host: ${host} under flags: is its own loopback; leave host: out: Aerie publishes the port on 127.0.0.1 alone`,
        ]
      : []),
  ];
}

const LOOPBACKS = ['127.0.0.1', 'localhost', '::1'];

export function networkOf(client: ClientCommand): string {
  return (optionOf(client, 'network') ?? optionOf(client, 'net'))?.value ?? '';
}

/** Its loopback is not the machine's. */
export function hasOwnNetwork(client: ClientCommand): boolean {
  return networkOf(client) !== 'host';
}

/** The port of the machine at which a port of the container is published by the person; 0 = any, undefined = it is not. */
export function publishedAt({ options }: ClientCommand, port: number): number | undefined {
  for (const { name, value = '' } of options) {
    if (name !== 'publish') continue;
    const parts = value.replace(/\/tcp$/, '').split(':');
    if (port > 0 && Number(parts.at(-1)) === port) return Number(parts.at(-2) ?? 0);
  }
  return undefined;
}

/** An image of an engine whose entry point is the launcher, or one that is named. */
function hasOwnProgram(client: ClientCommand): boolean {
  return optionOf(client, 'entrypoint') !== undefined || /(?:^|\/)vllm-openai(?::|@|$)/.test(client.rest[0] ?? '');
}

function findStepProblems(client: ClientCommand, host: string | undefined): string[] {
  const name = optionOf(client, 'job-name');
  return [
    ...(client.rest.length === 0 ? ['has no program; write srun … python3 -m sglang.launch_server'] : []),
    ...(name === undefined ? [] : ['has -J/--job-name; leave it out: Aerie names the job, and finds and ends it by that name']),
    ...(hasSwitch(client, 'label') ? ['has -l/--label; leave it out: it changes the lines of the log'] : []),
    ...(hasSwitch(client, 'pty') ? ['has --pty; leave it out: there is no terminal'] : []),
    ...(hasSwitch(client, 'multi-prog') ? ['has --multi-prog; leave it out: a server is one task'] : []),
    ...(host === undefined
      ? [
          'starts the engine on a node that Slurm chooses, and host: under flags: says who may reach it there; write host: 0.0.0.0 ' +
            '(whoever reaches that node reaches the server), or host: 127.0.0.1 where the node is the machine itself',
        ]
      : []),
  ];
}
