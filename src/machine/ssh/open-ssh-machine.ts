/**
 * A machine behind ssh: what is asked in sh (`shell-machine.ts`), over scripts on one shared connection (`ssh-wire.ts`), with
 * waiting (`patience.ts`) and ways to its ports (`reach.ts`). Opening it connects to nothing; the first question does.
 */
import type { Host } from '../../host/host.ts';
import type { Machine, Reach, ReachChange } from '../machine.ts';
import { shellMachine } from '../shell/shell-machine.ts';
import { withPatience } from './patience.ts';
import { openReach } from './reach.ts';
import { nameOfTarget, programName } from './ssh-command.ts';
import { openSshWire } from './ssh-wire.ts';

export interface SshMachineOptions {
  /** `[USER@]NAME` or `ssh://[USER@]NAME[:PORT]`: what ssh takes. */
  readonly target: string;
  readonly host: Host;
  /** How long a question waits for a machine that is out of reach. */
  readonly patienceMs: number;
  /** Ends all waiting. */
  readonly signal: AbortSignal;
}

export function openSshMachine({ target, host, patienceMs, signal }: SshMachineOptions): Machine {
  const name = nameOfTarget(target);
  const { clock } = host;
  const listeners = new Set<(change: ReachChange) => void>();
  const onChange = (change: ReachChange) => {
    for (const listener of listeners) listener(change);
  };
  const wire = openSshWire(target, host);
  // Who waits for a machine that is away waits on one that is closed for nothing, and would hold the process.
  const closing = new AbortController();
  const patience = { patienceMs, signal: AbortSignal.any([signal, closing.signal]), onChange };
  const patient = withPatience(wire, { name, program: programName(host), target, clock, ...patience });
  const machine = shellMachine(patient, { name, clock });
  const ways = new Set<Reach>();
  return {
    ...machine,
    isHere: false,
    async reach(port, address = '127.0.0.1') {
      const way = await openReach({ host, target, address, port, wasReached: () => patient.wasReached });
      if (closing.signal.aborted) await way.close();
      ways.add(way);
      return {
        baseUrl: way.baseUrl,
        isOpen: () => way.isOpen(),
        drops: () => way.drops(),
        refusal: () => way.refusal(),
        async close() {
          ways.delete(way);
          await way.close();
        },
      };
    },
    onReachChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      closing.abort();
      await Promise.all([wire.close(), ...[...ways].map((way) => way.close())]);
      ways.clear();
    },
  };
}
