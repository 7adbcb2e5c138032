/**
 * Finds the log of a server that is already running: the file, the container or the journal that its output goes to. Asks its machine
 * and touches nothing there.
 * On failure: a value of kind `none` that says what was seen and what a person may do. Throws `machine.unreachable` alone.
 */
import type { Machine } from '../../machine/machine.ts';
import type { ContainerFacts } from './container-facts.ts';
import { parseInspection, publishersOf } from './container-facts.ts';
import { judgeOutputs, judgeReaders, type LoudStream, noneOf } from './judge-outputs.ts';
import {
  OUTPUTS_SCRIPT,
  parseOutputs,
  parseReaders,
  parseWrittenFiles,
  READERS_SCRIPT,
  WRITTEN_FILES_SCRIPT,
} from './process-outputs.ts';
import type { LogPlace, NoLog, SeenProcess, ServerLog } from './server-log.ts';

type Asked = Pick<Machine, 'run' | 'readFile' | 'portOwner' | 'name'>;

/** A scan of /proc on a busy machine, and docker's daemon under load, take seconds. */
const ASK_MS = 20_000;
/** Readers of one pipe: a tee, and who shares its end. */
const MOST_READERS = 4;

export async function findServerLog(machine: Asked, place: LogPlace, loud: LoudStream = 'stderr'): Promise<ServerLog> {
  if ('path' in place) return await ofPath(machine, place.path);
  if ('container' in place) return await ofContainer(machine, place.container);
  if ('pid' in place) return await ofProcess(machine, place.pid, loud);
  return await ofPort(machine, place.port, loud);
}

async function ofPath(machine: Asked, path: string): Promise<ServerLog> {
  const there = await machine.readFile(path, 0, 1);
  if (there !== undefined) return { kind: 'file', path, readPath: path, isDeleted: false };
  return noneOf(`${path} is not there on ${machine.name}, or may not be read`, 'Correct log: in the run file.');
}

/** A port that docker publishes is held by docker, or by nobody who may be seen. */
async function ofPort(machine: Asked, port: number, loud: LoudStream): Promise<ServerLog> {
  const owner = await machine.portOwner(port);
  if (owner === undefined)
    return noneOf(`nothing listens on port ${port} of ${machine.name}`, 'Ask again while the server runs.');
  const isDockers = /(^|\/)(docker-proxy|rootlesskit|rootlessport)( |$)/.test(owner.command);
  const log = owner.pid === undefined || isDockers ? undefined : await ofProcess(machine, owner.pid, loud);
  if (log !== undefined && log.kind !== 'none') return log;
  const published = await publisherOf(machine, port);
  if (published !== undefined) return published;
  return (
    log ??
    noneOf(
      `who listens on port ${port} of ${machine.name} may not be seen`,
      `Somebody who may can say it:  sudo ss -ltnp 'sport = :${port}'\nThen name the log with log: in the run file.`,
    )
  );
}

async function publisherOf(machine: Asked, port: number): Promise<ServerLog | undefined> {
  // The filter `publish` of docker asks for ports inside of containers.
  const listed = await docker(machine, ['ps', '--no-trunc', '--format', '{{.ID}} {{.Ports}}']);
  const [id, ...others] = listed.isAnswered ? publishersOf(listed.text, port) : [];
  return id !== undefined && others.length === 0 ? await ofContainer(machine, id) : undefined;
}

async function ofProcess(machine: Asked, pid: number, loud: LoudStream): Promise<ServerLog> {
  const said = await script(machine, OUTPUTS_SCRIPT, String(pid));
  const step = judgeOutputs(parseOutputs(said), pid, loud);
  switch (step.kind) {
    case 'found':
      return step.log;
    case 'ask-docker': {
      const log = await ofContainer(machine, step.container);
      return { ...log, ...withProcess(step.otherwise) };
    }
    case 'ask-readers':
      return await ofReaders(machine, step.inode, step.process);
    case 'ask-journal':
      return await ofJournal(machine, step);
  }
}

const withProcess = ({ process }: NoLog) => (process === undefined ? {} : { process });

async function ofReaders(machine: Asked, inode: string, process: SeenProcess): Promise<ServerLog> {
  const pids = parseReaders(await script(machine, READERS_SCRIPT, inode)).slice(0, MOST_READERS);
  const readers = await Promise.all(
    pids.map(async (pid) => ({ pid, ...parseWrittenFiles(await script(machine, WRITTEN_FILES_SCRIPT, String(pid))) })),
  );
  return judgeReaders(process, readers);
}

async function ofContainer(machine: Asked, word: string): Promise<ServerLog> {
  const { reply, container } = await inspect(machine, word);
  if (container === undefined)
    return noneOf(`container ${word} of ${machine.name} cannot be looked at: ${reply.because}`, reply.remedy);
  return logOfContainer(container);
}

/** undefined: it is not there, or docker does not tell. */
export async function inspectContainer(machine: Asked, id: string): Promise<ContainerFacts | undefined> {
  return (await inspect(machine, id)).container;
}

async function inspect(machine: Asked, word: string) {
  const reply = await docker(machine, ['inspect', '--type', 'container', word]);
  return { reply, container: reply.isAnswered ? parseInspection(reply.text) : undefined };
}

/** Drivers that send lines away and keep none that docker could read. */
export function logOfContainer(container: ContainerFacts): ServerLog {
  if (container.logDriver !== 'none') return { kind: 'docker', container };
  return {
    ...noneOf(
      `container ${container.name} keeps no log (log driver none)`,
      'Start it without --log-driver none, or name the file that its server writes with log: in the run file.',
    ),
    container,
  };
}

/** This start of the unit, so that no line of an earlier one is taken for one of it. */
async function ofJournal(
  machine: Asked,
  { unit, isOfUser, process }: { readonly unit: string; readonly isOfUser: boolean; readonly process: SeenProcess },
): Promise<ServerLog> {
  const of = isOfUser ? ['--user'] : [];
  const args = [...of, 'show', '--property=InvocationID', '--value', unit];
  const shown = await machine.run({ file: 'systemctl', args, timeoutMs: ASK_MS });
  const invocation = shown.kind === 'ended' && /^[0-9a-f]{32}$/.test(shown.stdout.trim()) ? shown.stdout.trim() : '';
  const log = { kind: 'journal', unit, isOfUser, invocation, process } as const;
  const by = isOfUser ? '--user-unit' : '--unit';
  const tried = await machine.run({
    ...{ file: 'journalctl', timeoutMs: ASK_MS },
    args: ['--quiet', '--no-pager', '--lines=1', '--output=cat', `${by}=${unit}`],
  });
  if (tried.kind === 'ended' && tried.code === 0 && tried.stdout.trim() !== '') return log;
  const because =
    tried.kind === 'ended'
      ? tried.stderr.trim() || 'it shows no line of the unit'
      : tried.kind === 'absent'
        ? 'there is no journalctl'
        : tried.kind;
  return noneOf(
    `the output of unit ${unit} goes to the journal of ${machine.name}, which does not show it: ${because.slice(0, 200)}`,
    `Somebody who may can say it:  sudo journalctl -u ${unit} -o cat\nMembers of the group systemd-journal may read it.`,
    process,
  );
}

interface DockerReply {
  readonly isAnswered: boolean;
  readonly text: string;
  readonly because: string;
  readonly remedy: string;
}

const WHY_NO_DOCKER: Readonly<Record<string, string>> = {
  absent: 'there is no docker',
  timeout: 'docker does not answer',
};

async function docker(machine: Asked, args: readonly string[]): Promise<DockerReply> {
  const result = await machine.run({ file: 'docker', args, timeoutMs: ASK_MS });
  if (result.kind === 'ended' && result.code === 0) return { isAnswered: true, text: result.stdout, because: '', remedy: '' };
  if (result.kind !== 'ended') {
    const because = WHY_NO_DOCKER[result.kind] ?? `docker ended with ${result.kind}`;
    return { isAnswered: false, text: '', because, remedy: `Try  docker ps  on ${machine.name}.` };
  }
  const said = result.stderr.trim().split('\n').at(-1)?.slice(0, 200) ?? '';
  const isDenied = /permission denied/i.test(said);
  return {
    isAnswered: false,
    text: '',
    because: said === '' ? `docker ended with exit status ${result.code}` : said,
    remedy: isDenied
      ? `Somebody who may can say it:  sudo docker ${args.join(' ')}\nMembers of the group docker may ask it.`
      : `Try  docker ps  on ${machine.name}.`,
  };
}

/** What the script printed; '' where it did not end. */
async function script(machine: Asked, text: string, word: string): Promise<string> {
  const result = await machine.run({ file: 'sh', args: ['-c', text, 'sh', word], timeoutMs: ASK_MS });
  return result.kind === 'ended' ? result.stdout : '';
}
