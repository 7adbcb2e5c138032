/** A machine that is asked for no longer than until a moment, whatever hangs there. What is late is an error, and never an answer. */
import { AerieError } from '../../base/errors.ts';
import { formatDuration } from '../../base/units.ts';
import type { Machine } from '../../machine/machine.ts';
import type { ProbeWorld } from './server-questions.ts';

export type AskedMachine = Pick<Machine, 'name' | 'isHere' | 'run' | 'readFile' | 'portOwner'>;

/** `withinMs` from now on. Questions throw `machine.unreachable` where the time is up. */
export function boundedMachine(machine: Machine, { clock, signal, endsAt }: ProbeWorld, withinMs: number): AskedMachine {
  const untilMs = Math.min(endsAt, clock.elapsed() + withinMs);
  const inTime = async <T>(work: Promise<T>, leftMs: number): Promise<T> => {
    const isThere = new AbortController();
    const late = clock.sleep(leftMs, AbortSignal.any([signal, isThere.signal])).then((): T => {
      throw new AerieError('machine.unreachable', `no answer in ${formatDuration(withinMs)}`, { remedy: '' });
    });
    late.catch(() => undefined);
    work.catch(() => undefined);
    try {
      return await Promise.race([work, late]);
    } finally {
      isThere.abort(); // else the process waits for the clock
    }
  };
  const left = () => Math.max(1, untilMs - clock.elapsed());
  return {
    ...{ name: machine.name, isHere: machine.isHere },
    // The program's own limit comes first, so that it is ended, and said to be the one that was late.
    run: (request) => {
      const timeoutMs = Math.min(request.timeoutMs, left());
      return inTime(machine.run({ ...request, timeoutMs, signal }), timeoutMs + LATER_MS);
    },
    readFile: (path, offset, most) => inTime(machine.readFile(path, offset, most), left()),
    portOwner: (port) => inTime(machine.portOwner(port), left()),
  };
}

/** A program is ended, and its machine says so, on a busy machine too. */
const LATER_MS = 1_000;
