/**
 * What a person types to meet what Aerie met, and what to do about it. Pure. `NAME true` meets a key, a host key, a name, a network.
 * It meets nothing of a program that is not there to be typed, of a login that runs no sh, or of sessions that are ended at work.
 */
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import type { ShellReply } from '../shell-wire.ts';

type Lost = Extract<ShellReply, { kind: 'lost' }>;

/** Of a machine that was never reached, where waiting cannot help. */
export function refusedMachine(lost: Pick<Lost, 'because' | 'lacks'>, names: SshNames & { readonly name: string }): AerieError {
  return new AerieError('machine.refused', `${names.name} cannot be used: ${lost.because}`, {
    remedy: `Nothing was started. ${whatToTry(lost.lacks, names)}`,
    facts: { machine: names.name },
  });
}

/** `ssh`: the program here cannot be started. `sh`: something else than a shell ran there. `rest`: scripts are cut off there, one after the other. */
export type Lack = 'ssh' | 'sh' | 'rest';

export interface SshNames {
  /** What is called here: `ssh`, or what AERIE_SSH names. */
  readonly program: string;
  /** As ssh takes it: with its user and its port. */
  readonly target: string;
}

export function whatToTry(lack: Lack | undefined, { program, target }: SshNames): string {
  const ssh = `${quoteShell(program)} ${quoteShell(target)}`;
  switch (lack) {
    case 'ssh':
      return `Make this tell a version, then give the same command again:
  ${quoteShell(program)} -V
${program === 'ssh' ? 'It is in the package openssh-client (Debian, Ubuntu) or openssh-clients (Fedora); AERIE_SSH=/path/to/program names another one.' : 'AERIE_SSH names it: correct that, or unset it, and the ssh of this system is called.'}`;
    case 'sh':
      return `Make this say "sh works", then give the same command again:
  ${ssh} "exec sh -c 'echo sh works'"
A login shell that is none, ForceCommand in the sshd_config there, or command= before the key in authorized_keys stands before sh.`;
    case 'rest':
      return `A short command passes, so this is to be seen there, as root:
  journalctl -n 50 -u ssh -u sshd; dmesg -T | tail -n 50
Once nothing ends its sessions there, the same command goes on.`;
    case undefined:
      return `Make this work without a question, then give the same command again:\n  ${ssh} true`;
  }
}
