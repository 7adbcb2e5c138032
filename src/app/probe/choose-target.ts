/** What `aerie probe` was asked about: a run file or folder, an ssh name, or an address and a log. Says what it took it for. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import { openRedactor, type Redact } from '../../base/redact.ts';
import { redactShapes } from '../../base/redact-shapes.ts';
import type { Host } from '../../host/host.ts';
import { openBook } from '../../server/launch/launch-book.ts';
import { NOTHING_KEPT } from '../../server/recovery/kept-changes.ts';
import type { MachineSpec, PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import { findRun } from '../find-run.ts';
import { rulesOf } from '../policy-in-force.ts';
import { isLaunched } from '../server/choose-servers.ts';
import { secretsAtHand } from '../servers/secrets.ts';
import { addressed, machineOfWord, ofUrl } from './addressed.ts';
import { type Subject, UNKNOWN_SUBJECT } from './subject.ts';

export interface ProbeInput {
  /** Run file, run folder, or ssh name. */
  readonly target?: string;
  /** One server of the run file. */
  readonly server?: string;
  readonly url?: string;
  readonly log?: string;
  /** The machine that `url` and `log` are of; left out: this one. */
  readonly ssh?: string;
  /** Name of the environment variable that holds the key of a locked server. */
  readonly keyEnv?: string;
}

export interface Target {
  readonly taken: string;
  readonly subjects: readonly Subject[];
  /** A machine whose engines are looked for. */
  readonly searched: MachineSpec | undefined;
  /** Headers and redaction for those that are found there. */
  readonly headers: Readonly<Record<string, string>>;
  readonly redact: Redact;
}

export async function chooseTarget(input: ProbeInput, host: Host): Promise<Target> {
  const { url, log } = input;
  // A container has no name that a file or an ssh machine could have.
  const isContainer = url === undefined && log === undefined && input.target?.startsWith('docker://') === true;
  if (isContainer) return chooseTarget(withoutTarget(input), host);
  const { target } = input;
  const isAddressed = url !== undefined || log !== undefined;
  if ((target === undefined) === !isAddressed) throw wrongTarget(isAddressed);
  const { headers, redact } = keyOf(input, host.env);
  if (target === undefined) {
    const { taken, subject } = addressed(input, { headers, redact });
    return { taken, subjects: [subject], searched: undefined, headers, redact };
  }
  if (input.ssh !== undefined) throw sshBeside(target);
  if (await isRun(target)) return ofRun(target, input.server, { headers, host });
  if (input.server !== undefined) throw serverOfSsh(target);
  return {
    taken: `${target}, a machine behind ssh (no file has that name)`,
    subjects: [],
    searched: machineOfWord(target),
    headers,
    redact,
  };
}

function withoutTarget({ target = '', ...input }: ProbeInput): ProbeInput {
  return { ...input, url: target };
}

/** By what is there; a name that only a run file has is one that is missing. */
async function isRun(word: string): Promise<boolean> {
  if (/\.ya?ml$/.test(word)) return true;
  return stat(resolve(word)).then(
    () => true,
    () => false,
  );
}

async function ofRun(
  argument: string,
  name: string | undefined,
  { headers, host }: { readonly headers: Subject['headers']; readonly host: Host },
): Promise<Target> {
  const { run } = await findRun(argument);
  const policy = await rulesOf(argument, run, host);
  const chosen = run.servers.filter((server) => name === undefined || server.name === name);
  if (chosen.length === 0) throw noSuchServer(run, name ?? '');
  const subjects: Subject[] = [];
  for (const server of chosen) subjects.push(await subjectOf({ run, server, policy, headers, env: host.env }));
  const which = name === undefined ? '' : `, server ${name}`;
  return {
    taken: `run ${run.name} of ${run.file}${which}`,
    subjects,
    searched: undefined,
    headers,
    redact: redactorOf([], host.env),
  };
}

interface OfRun {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly policy: readonly PolicyRule[];
  readonly headers: Subject['headers'];
  readonly env: Host['env'];
}

async function subjectOf({ run, server, policy, headers, env }: OfRun): Promise<Subject> {
  const key = server.apiKeyName === undefined ? undefined : env[server.apiKeyName];
  const base: Subject = {
    ...UNKNOWN_SUBJECT,
    ...{ name: server.name, engine: server.engine, machine: server.machine, logPath: server.log },
    headers: key === undefined ? headers : { authorization: `Bearer ${key}` },
    redact: redactorOf([...secretsAtHand(server, env), ...(key === undefined ? [] : [key])], env),
    known: { run, server, policy, launches: 0, launch: undefined },
    notes:
      server.apiKeyName !== undefined && key === undefined
        ? [`${server.apiKeyName}, its key, is not set in the environment`]
        : [],
  };
  if (isLaunched(server)) return launched(base, run, server, policy);
  const { attach } = server;
  if (attach === undefined) return { ...base, notes: [`the ${server.engine} engine lives and ends with aerie run`] };
  switch (attach.kind) {
    case 'url':
      return { ...base, ...ofUrl(attach.url, server.machine !== undefined) };
    case 'port':
      return { ...base, port: attach.port };
    case 'docker':
      return { ...base, container: attach.container };
  }
}

/** By its book: the launch that lives, or was never seen to end. */
async function launched(base: Subject, run: RunSpec, server: ServerSpec, policy: readonly PolicyRule[]): Promise<Subject> {
  const book = await openBook(run.serverFolder, server.name, NOTHING_KEPT).read();
  const usual =
    server.log === '' && server.machine === undefined ? join(run.serverFolder, 'logs', `${server.name}.log`) : server.log;
  const { current } = book;
  if (current === undefined) {
    const last = book.tries.at(-1)?.verdict;
    const notes =
      book.launches === 0
        ? [`Aerie has not launched it yet:  aerie run ${quoteShell(run.file)}`]
        : [`no launch of it lives; launch ${book.launches} ended${last === undefined ? '' : `: ${last.state}, ${last.title}`}`];
    return {
      ...base,
      port: server.port,
      logPath: book.launches === 0 ? '' : usual,
      isOver: book.launches > 0,
      known: { run, server, policy, launches: book.launches, launch: undefined },
      notes: [...base.notes, ...notes],
    };
  }
  const { identity, port, logPath, statusPath } = current;
  return {
    ...base,
    identity,
    port,
    logPath,
    statusPath,
    pid: identity?.pid ?? 0,
    known: { run, server, policy, launches: book.launches, launch: current },
  };
}

function keyOf({ keyEnv }: ProbeInput, env: Host['env']): Pick<Target, 'headers' | 'redact'> {
  if (keyEnv === undefined) return { headers: {}, redact: redactorOf([], env) };
  const key = env[keyEnv];
  if (key === undefined || key === '')
    throw new AerieError('secret.missing', `${keyEnv}, which --key-env names, is not set in the environment.`, {
      remedy: `export ${keyEnv}=… and give the same command again. Nothing was asked.`,
    });
  return { headers: { authorization: `Bearer ${key}` }, redact: redactorOf([key], env) };
}

/** Keys of the environment are hidden wherever they turn up, whoever named them. */
function redactorOf(secrets: readonly string[], env: Host['env']): Redact {
  const named = Object.entries(env).flatMap(([name, value]) => (/(TOKEN|KEY|SECRET|PASSWORD)$/.test(name) ? (value ?? []) : []));
  const redact = openRedactor([...secrets, ...named]);
  return (text) => redactShapes(redact(text));
}

function wrongTarget(isAddressed: boolean): AerieError {
  return new AerieError(
    'usage.flag',
    isAddressed ? 'Give either a run or a machine, or --url and --log.' : 'Nothing was named to probe.',
    {
      remedy: 'aerie probe run.yaml     aerie probe gpu-box     aerie probe --url http://127.0.0.1:30000 --log server.log',
    },
  );
}

function sshBeside(target: string): AerieError {
  return new AerieError('usage.flag', `--ssh stands beside --url and --log, and ${target} was named.`, {
    remedy: 'The run file says where its servers are; a machine is probed by its name: aerie probe gpu-box',
  });
}

function serverOfSsh(target: string): AerieError {
  return new AerieError('usage.flag', `--server names a server of a run file, and ${target} is none.`, {
    remedy: 'aerie probe run.yaml --server NAME',
  });
}

function noSuchServer(run: RunSpec, name: string): AerieError {
  return new AerieError('usage.flag', `${name} is no server of ${run.file}.`, {
    remedy: `Its servers are: ${run.servers.map((server) => server.name).join(', ')}.`,
  });
}
