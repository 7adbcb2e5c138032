/**
 * The command line of ssh. The user's own config, keys, agents and jump hosts are honoured: no `-F`, no `-i`; the options here are
 * those that a script needs to answer or fail by itself. AERIE_SSH names another program that takes ssh's arguments; a wrapper
 * script has to `exec` ssh, because only the program itself is ended.
 *
 * Untrusted: the target comes from a run file. It stands behind `--`, and one that begins with a dash is refused.
 */
import { lstatSync, mkdirSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { AerieError } from '../../base/errors.ts';
import type { Host } from '../../host/host.ts';

const OPTIONS = [
  'BatchMode=yes', // nobody is there to answer a question
  'ConnectTimeout=10', // seconds; TCP's own is two minutes
  'ServerAliveInterval=5', // a dead path is noticed after 15 s; TCP's own is two hours
  'ServerAliveCountMax=2', // questions without an answer that are borne: the third ends it
  'LogLevel=ERROR',
  'RequestTTY=no', // a terminal changes bytes
  'RemoteCommand=none',
  'PermitLocalCommand=no',
  'ClearAllForwardings=yes', // ports of the user's config belong to the user's own sessions
  'ForwardAgent=no',
  'ForwardX11=no',
];

/** One connection for all scripts, kept for a minute: a script then takes 10 ms instead of 300. */
export type Sharing = { readonly kind: 'none' } | { readonly kind: 'shared'; readonly folder: string };

export interface SshCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Host['env'];
}

/** What is called here. */
export function programName({ env }: Pick<Host, 'env'>): string {
  const named = env['AERIE_SSH'] ?? '';
  return named === '' ? 'ssh' : named;
}

/** Without a terminal, the ssh of a jump host, which does not hear of BatchMode, would ask in a window. */
function programOf(host: Host): Pick<SshCommand, 'file' | 'env'> {
  return { file: programName(host), env: { ...host.env, SSH_ASKPASS_REQUIRE: 'never' } };
}

/** `more` comes first: ssh takes the first value of an option that it is given. */
export function renderSsh(host: Host, target: string, more: readonly string[], command: string): SshCommand {
  checkTarget(target);
  const options = [...more, ...OPTIONS].flatMap((option) => ['-o', option]);
  return { ...programOf(host), args: ['-T', ...options, '--', target, command] };
}

/** Asks the ssh that holds `socket` to forward a port. No config is read: its forwards would be asked for as well. */
export function renderControl(host: Host, target: string, socket: string, forward: string): SshCommand {
  return { ...programOf(host), args: ['-F', 'none', '-S', socket, '-O', 'forward', '-L', forward, '--', target] };
}

export function sharingOptions(sharing: Sharing): string[] {
  return sharing.kind === 'none'
    ? ['ControlMaster=no', 'ControlPath=none']
    : ['ControlMaster=auto', `ControlPath=${sharing.folder}/%C`, 'ControlPersist=60'];
}

/** As people know the machine: without user, scheme and port. */
export function nameOfTarget(target: string): string {
  const place = target.replace(/^ssh:\/\//, '').replace(/\/.*$/, '');
  const name = place.slice(place.lastIndexOf('@') + 1);
  return target.startsWith('ssh://') ? name.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') : name;
}

export function checkTarget(target: string): void {
  if (target !== '' && !target.startsWith('-') && !/[\0\s]/.test(target)) return;
  throw new AerieError('usage.flag', `${JSON.stringify(target)} is no name of a machine.`, {
    remedy: 'Write it as ssh does: [USER@]NAME or ssh://[USER@]NAME[:PORT]. Nothing was started.',
  });
}

/**
 * A folder for sockets that only this user can enter, made where it is not there. One that is too long, or not ours alone, is not
 * used: every script then connects anew. Asked before each connection: what tidies temporary folders takes it away at times.
 */
export function openSharing(places: readonly string[] = [tmpdir(), '/tmp']): Sharing {
  const uid = process.getuid?.() ?? -1; // a number that no table of users knows has no more than that
  const folders = places.map((place) => below(place, `aerie-ssh-${uid}`));
  const folder = folders.find((one) => holdsSockets(one) && isOwnFolder(one, uid));
  return folder === undefined ? { kind: 'none' } : { kind: 'shared', folder };
}

/** For one socket where none are shared; whoever asks for it removes it. undefined: no place takes one. */
export async function makeSocketFolder(places: readonly string[] = [tmpdir(), '/tmp']): Promise<string | undefined> {
  for (const place of places) {
    const name = below(place, 'aerie-ssh-');
    const folder = holdsSockets(`${name}XXXXXX`) ? await mkdtemp(name).catch(() => undefined) : undefined;
    if (folder !== undefined) return folder;
  }
  return undefined;
}

function below(place: string, name: string): string {
  return `${place.replace(/\/+$/, '')}/${name}`;
}

/**
 * The path of a socket is at most 103 bytes, of which `/%C` takes 41 and the name that ssh binds first 17 more. ssh reads it as a
 * word of its config, with `%` as the beginning of a name.
 */
function holdsSockets(folder: string): boolean {
  return folder.length <= 103 - 41 - 17 && /^\/[A-Za-z0-9._/-]+$/.test(folder);
}

function isOwnFolder(folder: string, uid: number): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    // it is there, or cannot be: the look tells
  }
  try {
    const stat = lstatSync(folder);
    return stat.isDirectory() && stat.uid === uid && (stat.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
