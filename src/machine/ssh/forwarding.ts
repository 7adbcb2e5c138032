/**
 * What ssh says of a connection that it was to forward, and what a person is told where the machine forwards none. Pure.
 *
 * OpenSSH 9.2, at LogLevel INFO, measured with AllowTcpForwarding no and remote, DisableForwarding yes, PermitOpen of another port
 * and none, and a key with no-port-forwarding or permitopen=:  `channel 2: open failed: administratively prohibited: open failed`.
 * Where nobody listens it says `channel 2: open failed: connect failed: Connection refused`, and that is a server that loads.
 */
import { AerieError } from '../../base/errors.ts';

/** RFC 4254 §5.1, codes 1 and 3: whoever is asked may not, or has never heard of forwarding. 2 is a failed connect, 4 a shortage that passes. */
const PROHIBITED = /^channel \d+: open failed: (?:administratively prohibited|unknown channel type)\b/;

export function isProhibition(line: string): boolean {
  return PROHIBITED.test(line);
}

export interface RefusedForward {
  /** As people know the machine. */
  readonly name: string;
  /** Where the way was to lead there. */
  readonly address: string;
  readonly port: number;
  /** The last words of ssh; the machine has chosen some of them. */
  readonly said: string;
  readonly tries: number;
}

const LONGEST = 200;

export function refusedForward({ name, address, port, said, tries }: RefusedForward): AerieError {
  const there = `${address.includes(':') ? `[${address}]` : address}:${port}`;
  const words = said.replaceAll(UNSAFE, ' ').trim().slice(0, LONGEST);
  return new AerieError('machine.refused', `${name} lets nobody through to its port ${port}: sshd there forbids it.`, {
    because: `ssh was turned away ${tries} times of ${tries}: ${words}`,
    remedy: `Nothing was sent to a server there; one that runs goes on. Any of these helps, then the same command:
  in the sshd_config of ${name}: AllowTcpForwarding local, no DisableForwarding, and PermitOpen (if it stands there) with ${there};
    the key in authorized_keys without restrict, no-port-forwarding or another permitopen=.
    What holds now, as root there:  sshd -T | grep -iE 'forwarding|permitopen'
  an address that this machine reaches, without ssh:  attach: http://HOST:${port}
  aerie on ${name} itself, with a run file that names no machine for this server`,
    facts: { machine: name, port },
  });
}

const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu;
