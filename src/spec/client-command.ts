/**
 * A `command:` that is a client: `docker run …`, `podman run …` or `srun …` starts the engine somewhere else, and lives as long as it
 * does. Pure. Read as a shell's words, with their places: what stands between them is put in by `server/launch/contained-command.ts`.
 * Promise: a command that may be such a client and cannot be read for sure is `unreadable`, never taken for something else.
 */
import { basename } from 'node:path/posix';
import { type ShellWord, splitShellWords } from '../base/shell-words.ts';

export interface CommandOption {
  /** The long name, without dashes; of one that has none, its letter. */
  readonly name: string;
  /** undefined: none was given. As it is written where a shell changes it. */
  readonly value: string | undefined;
  readonly start: number;
  readonly end: number;
}

export interface ClientCommand {
  readonly kind: 'container' | 'step';
  /** For sentences: `docker run`, `srun`. */
  readonly client: string;
  /** What stands before `run`, as it is written (`sudo docker --context x`): whoever asks about the container begins with it. */
  readonly before: string;
  /** Right behind `sudo`; undefined where there is none. */
  readonly sudoEnd: number | undefined;
  /** Right behind `run` or `srun`. */
  readonly optionsAt: number;
  readonly options: readonly CommandOption[];
  /** Image and launcher, or the launcher alone. */
  readonly rest: readonly string[];
}

export interface UnreadableClient {
  readonly kind: 'unreadable';
  readonly client: string;
}

/** undefined: no such client. */
export function readClientCommand(written: string): ClientCommand | UnreadableClient | undefined {
  const command = written.trimEnd(); // a folded line of YAML ends with a line feed
  const words = splitShellWords(command);
  const prefix = words === undefined ? undefined : readPrefix(words);
  const found = words === undefined || prefix === undefined ? undefined : readClient(command, words, prefix);
  if (found !== undefined) return found;
  const run = /(?:^|[\s;&|('"/])(docker|podman)\s(?:[^\n]*\s)?run(?:\s|$)/.exec(command)?.[1];
  if (run !== undefined) return { kind: 'unreadable', client: `${run} run` };
  return /(?:^|[\s;&|('"/])srun(?:\s|$)/.test(command) ? { kind: 'unreadable', client: 'srun' } : undefined;
}

export function optionOf({ options }: ClientCommand, name: string): CommandOption | undefined {
  return options.findLast((option) => option.name === name);
}

/** A switch that is there and not `=false`. */
export function hasSwitch(client: ClientCommand, name: string): boolean {
  const option = optionOf(client, name);
  return option !== undefined && !/^(?:false|0|f)$/i.test(option.value ?? '');
}

interface Prefix {
  /** Index of the client's own word. */
  readonly at: number;
  readonly sudoEnd: number | undefined;
}

const ASSIGNMENT = /^[A-Za-z_]\w*=/;
/** Options of sudo that take a word. */
const SUDO_VALUES = /^(?:-[ACDghpRrTtUu]|--(?:user|group|host|prompt|chdir|close-from|role|type|chroot|command-timeout))$/;

/** Assignments, `exec`, `env A=b`, `sudo …`; undefined: something else stands there. */
function readPrefix(words: readonly ShellWord[]): Prefix | undefined {
  let at = 0;
  let sudoEnd: number | undefined;
  for (; at < words.length; at += 1) {
    const { text = '', end = 0 } = words[at] ?? {};
    if (ASSIGNMENT.test(text) || text === 'exec' || text === 'env') continue;
    if (basename(text) !== 'sudo') return { at, sudoEnd };
    sudoEnd = end;
    while (words[at + 1]?.text.startsWith('-') === true) at += SUDO_VALUES.test(words[at + 1]?.text ?? '') ? 2 : 1;
  }
  return undefined;
}

function readClient(command: string, words: readonly ShellWord[], { at, sudoEnd }: Prefix): ClientCommand | undefined {
  const program = words[at];
  if (program === undefined || !program.isPlain) return undefined;
  const name = basename(program.text);
  if (name === 'srun') {
    const { options, next } = readOptions(words, at + 1, SRUN);
    const rest = words.slice(next).map(({ text }) => text);
    const before = command.slice(0, program.end);
    return { kind: 'step', client: name, before, sudoEnd, optionsAt: program.end, options, rest };
  }
  if (name !== 'docker' && name !== 'podman') return undefined;
  const verb = readOptions(words, at + 1, GLOBAL).next;
  const last = words[verb - 1] ?? program;
  const run = words[verb]?.text === 'container' ? verb + 1 : verb;
  const word = words[run];
  if (word?.text !== 'run') return undefined;
  const { options, next } = readOptions(words, run + 1, RUN);
  const rest = words.slice(next).map(({ text }) => text);
  const before = command.slice(0, last.end);
  return { kind: 'container', client: `${name} run`, before, sudoEnd, optionsAt: word.end, options, rest };
}

interface Grammar {
  /** Long names that take no word behind them; every other one does. */
  readonly switches: ReadonlySet<string>;
  /** Letter → long name. A letter that is not here is its own name and takes a word. */
  readonly letters: Readonly<Record<string, string>>;
}

const set = (names: string): ReadonlySet<string> => new Set(names.split(' '));

/** Of docker 28 and podman 5. */
const GLOBAL: Grammar = {
  switches: set('debug tls tlsverify remote syslog transient-store'),
  letters: { D: 'debug', r: 'remote', H: 'host', c: 'context', l: 'log-level' },
};
const RUN: Grammar = {
  switches: set(
    'detach disable-content-trust help init interactive no-healthcheck oom-kill-disable privileged publish-all quiet read-only rm ' +
      'sig-proxy tty use-api-socket env-host http-proxy no-hosts no-hostname passwd read-only-tmpfs replace rmi tls-verify ' +
      'rootfs unsetenv-all',
  ),
  letters: { d: 'detach', i: 'interactive', t: 'tty', P: 'publish-all', q: 'quiet', p: 'publish', e: 'env', l: 'label' },
};
/** Of Slurm 22.05 to 25.05. */
const SRUN: Grammar = {
  switches: set(
    'preserve-env hold immediate no-kill kill-on-bad-exit label overcommit quit-on-interrupt quiet oversubscribe unbuffered verbose ' +
      'version disable-status no-allocate contiguous exact exclusive external-launcher interactive multi-prog overlap pty reboot ' +
      'spread-job test-only use-min-nodes whole help usage nice propagate resv-ports requeue no-requeue',
  ),
  letters: {
    ...{ E: 'preserve-env', H: 'hold', I: 'immediate', k: 'no-kill', K: 'kill-on-bad-exit', l: 'label', O: 'overcommit' },
    ...{ Q: 'quiet', s: 'oversubscribe', u: 'unbuffered', v: 'verbose', V: 'version', X: 'disable-status', Z: 'no-allocate' },
    ...{ h: 'help', N: 'nodes', n: 'ntasks', J: 'job-name', w: 'nodelist' },
  },
};

/** Options up to the first word that is none; what stands behind that belongs to the program that is started. */
function readOptions(
  words: readonly ShellWord[],
  from: number,
  grammar: Grammar,
): { readonly options: readonly CommandOption[]; readonly next: number } {
  const options: CommandOption[] = [];
  let at = from;
  for (; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined || !word.text.startsWith('-') || word.text === '-') break;
    if (word.text === '--') return { options, next: at + 1 };
    const read = word.text.startsWith('--') ? readLong(word.text, grammar) : readShort(word.text, grammar);
    const last = read.at(-1);
    const takesNext = last?.takesNext === true;
    const value = takesNext ? words[at + 1] : undefined;
    if (takesNext) at += 1;
    for (const one of read)
      options.push({
        name: one.name,
        value: one.takesNext ? value?.text : one.value,
        start: word.start,
        end: value?.end ?? word.end,
      });
  }
  return { options, next: Math.min(at, words.length) };
}

interface Read {
  readonly name: string;
  readonly value?: string;
  readonly takesNext: boolean;
}

function readLong(word: string, { switches }: Grammar): Read[] {
  const equals = word.indexOf('=');
  if (equals !== -1) return [{ name: word.slice(2, equals), value: word.slice(equals + 1), takesNext: false }];
  const name = word.slice(2);
  return [{ name, takesNext: !switches.has(name) }];
}

/** `-it`, `-p8000:8000`, `-e A`: letters up to the first that takes a value. */
function readShort(word: string, { switches, letters }: Grammar): Read[] {
  const found: Read[] = [];
  for (let at = 1; at < word.length; at += 1) {
    const letter = word[at] ?? '';
    const name = Object.hasOwn(letters, letter) ? (letters[letter] ?? letter) : letter;
    const behind = word.slice(at + 1).replace(/^=/, '');
    if (switches.has(name) && !/^[=\d]/.test(word.slice(at + 1))) found.push({ name, takesNext: false });
    else return [...found, behind === '' ? { name, takesNext: !switches.has(name) } : { name, value: behind, takesNext: false }];
  }
  return found;
}
