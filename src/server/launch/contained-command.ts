/**
 * A command that is a client (`docker run …`, `srun …`) with what Aerie needs put in: what makes the inside known again, the
 * environment by name, and a way to the port. Pure; the rest of the command stays as the person wrote it.
 *
 * Promises: no value of the environment stands on the command line; nothing listens beyond the loopback that the person did not let in.
 */
import { LABEL } from '../../machine/contained/containers.ts';
import type { Containment } from '../../machine/contained/inside.ts';
import { hasOwnNetwork, publishedAt } from '../../spec/check-client-command.ts';
import { type ClientCommand, optionOf, readClientCommand } from '../../spec/client-command.ts';
import { LOOPBACK } from './loopback.ts';

export interface ContainedCommand {
  readonly command: string;
  /** Where the engine listens, unless its flags say it. */
  readonly host: string;
  /** undefined: the engine is the command's own process. */
  readonly containment: Containment | undefined;
}

export interface ContainedFor {
  readonly marker: string;
  readonly port: number;
  /** Of the environment of the launch. */
  readonly envNames: readonly string[];
}

export function containCommand(command: string, asked: ContainedFor): ContainedCommand {
  const client = readClientCommand(command);
  if (client === undefined || client.kind === 'unreadable') return { command, host: LOOPBACK, containment: undefined };
  const names = [MARKER_NAME, ...asked.envNames];
  // sudo takes the environment away, and gives back what it is told to.
  const kept = client.sudoEnd === undefined ? [] : [insert(client.sudoEnd, ` --preserve-env=${names.join(',')}`)];
  if (client.kind === 'step')
    return {
      command: applyEdits(command, [...kept, ...editsOfStep(client, asked.marker, names)]),
      ...{ host: LOOPBACK, containment: { kind: 'step' } },
    };
  const edits = editsOfContainer(client, asked, names);
  const host = hasOwnNetwork(client) ? EVERYWHERE : LOOPBACK;
  return {
    command: applyEdits(command, [...kept, ...edits]),
    ...{ host, containment: { kind: 'container', control: controlOf(client) } },
  };
}

/** Variable of the launch's marker. */
const MARKER_NAME = 'AERIE_LAUNCH';
/** In a network of its own, of which the machine sees what is published. */
const EVERYWHERE = '0.0.0.0';

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function insert(at: number, text: string): Edit {
  return { start: at, end: at, text };
}

function applyEdits(command: string, edits: readonly Edit[]): string {
  return [...edits]
    .sort((a, b) => b.start - a.start)
    .reduce((text, { start, end, text: by }) => `${text.slice(0, start)}${by}${text.slice(end)}`, command);
}

/** `--rm` goes: docker says how a container ended only while it is there. Aerie removes it when that is written down. */
function editsOfContainer(client: ClientCommand, { marker, port }: ContainedFor, names: readonly string[]): Edit[] {
  const isPublished = !hasOwnNetwork(client) || publishedAt(client, port) === port;
  const words = [
    `--label ${LABEL}=${marker}`,
    ...names.map((name) => `--env ${name}`),
    ...(isPublished ? [] : [`--publish ${LOOPBACK}:${port}:${port}`]),
  ];
  const removed = client.options.filter(({ name }) => name === 'rm').map(({ start, end }) => ({ start, end, text: '' }));
  return [insert(client.optionsAt, ` ${words.join(' ')}`), ...removed];
}

/** A question must not wait for a password. */
function controlOf({ before, sudoEnd }: ClientCommand): string {
  return sudoEnd === undefined ? before : `${before.slice(0, sudoEnd)} -n${before.slice(sudoEnd)}`;
}

function editsOfStep(client: ClientCommand, marker: string, names: readonly string[]): Edit[] {
  const unless = (name: string, word: string) => (optionOf(client, name) === undefined ? [word] : []);
  const words = [
    `--job-name=${marker}`,
    ...unless('nodes', '--nodes=1'),
    ...unless('ntasks', '--ntasks=1'),
    ...unless('unbuffered', '--unbuffered'),
    ...unless('kill-on-bad-exit', '--kill-on-bad-exit'),
  ];
  const exported = optionOf(client, 'export');
  return [insert(client.optionsAt, ` ${words.join(' ')}`), ...(exported === undefined ? [] : [exportToo(exported, names)])];
}

/** Without --export everything is; with one, its list grows by these. */
function exportToo(
  { value = '', start, end }: { value?: string | undefined; start: number; end: number },
  names: readonly string[],
): Edit {
  if (/^(?:none|nil)$/i.test(value)) return { start, end, text: `--export=${names.join(',')}` };
  return insert(end, `,${names.join(',')}`);
}
