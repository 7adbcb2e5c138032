/** A server that is named by where it is and not by a run file: an address, a port behind ssh, a container, a log. Pure but for the paths of here. */
import { resolve } from 'node:path';
import { AerieError } from '../../base/errors.ts';
import { isLoopback } from '../../base/loopback.ts';
import { parseAttach } from '../../spec/field-kinds.ts';
import type { MachineSpec } from '../../spec/run.ts';
import { type Subject, UNKNOWN_SUBJECT } from './subject.ts';

export interface Addressed {
  /** As `attach:` of a run file has it: http://…, ssh://BOX:PORT, docker://NAME. */
  readonly url?: string;
  readonly log?: string;
  /** The machine that `url` and `log` are of; left out: this one. */
  readonly ssh?: string;
}

export function addressed(
  { url = '', log = '', ssh }: Addressed,
  { headers, redact }: Pick<Subject, 'headers' | 'redact'>,
): { readonly taken: string; readonly subject: Subject } {
  const named = ssh === undefined ? undefined : machineOfWord(ssh);
  const place = url === '' ? {} : placeOf(url, named);
  const machine = place.machine ?? named;
  const where = machine === undefined ? 'this machine' : machine.ssh;
  const subject: Subject = {
    ...UNKNOWN_SUBJECT,
    ...{ name: url === '' ? log : url, machine, headers, redact, ...place },
    logPath: log === '' ? '' : machine === undefined ? resolve(log) : log,
  };
  const kind = subject.container === '' ? 'address' : 'container';
  const what = [url === '' ? '' : `${kind} ${url}`, log === '' ? '' : `log ${log}`].filter((one) => one !== '').join(' and ');
  return { taken: `${what} on ${where}`, subject };
}

function placeOf(url: string, machine: MachineSpec | undefined): Partial<Subject> {
  const attach = parseAttach(url);
  switch (attach.kind) {
    case 'docker':
      return { container: attach.container };
    case 'ssh':
      if (machine !== undefined) throw sshTwice(url);
      if (attach.port < 1 || attach.port > 65_535) throw wrongUrl(url);
      return { machine: machineOfWord(attach.machine), port: attach.port };
    case 'port':
      return { port: attach.port };
    case 'url':
      return ofUrl(attach.url, machine !== undefined);
  }
}

/** A loopback address is a port of the server's machine; any other is asked from here. */
export function ofUrl(url: string, isElsewhere: boolean): Pick<Subject, 'url' | 'port' | 'address'> {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) throw wrongUrl(url);
  const port = Number(parsed.port) || (parsed.protocol === 'https:' ? 443 : 80);
  const isThere = isLoopback(parsed.hostname);
  if (isElsewhere && isThere) return { url: '', port, address: '' };
  return { url, port: isThere ? port : 0, address: '' };
}

/** What ssh could take for an option is no name. */
export function machineOfWord(word: string): MachineSpec {
  if (!/^(?:ssh:\/\/)?(?:[\w.%+-]+@)?[A-Za-z0-9_[][\w.:%[\]-]*$/.test(word))
    throw new AerieError('usage.flag', `'${word}' is neither a file here nor a name for ssh.`, {
      remedy: 'Give a run file, a run folder, or what you type after ssh: gpu-box, me@gpu-box, ssh://me@gpu-box:2222.',
    });
  return { ssh: word, outer: '' };
}

function wrongUrl(url: string): AerieError {
  return new AerieError('usage.flag', `'${url}' is no address.`, {
    remedy: 'Write it as --url http://127.0.0.1:30000, --url ssh://gpu-box:30000 or --url docker://NAME.',
  });
}

function sshTwice(url: string): AerieError {
  return new AerieError('usage.flag', `--ssh stands beside --url, and ${url} names its machine itself.`, {
    remedy: 'Leave out --ssh.',
  });
}
