/**
 * Job or step of a launch by `srun`, by its name, which is the launch's marker: the scripts for a shell, and what Slurm prints.
 * Pure. Inside an allocation srun makes a step of it, and only the step is ended; elsewhere it makes a job.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import type { Inside } from './inside.ts';

export function listSteps(marker: string): string {
  return [
    `squeue -h -n ${quoteShell(marker)} -o 'job|%i|%j|%N|%T|%r' || exit`,
    `squeue -h -s -u "$(id -un)" -o 'step|%i|%j|%N' || exit`,
  ].join('\n');
}

/** A job stands for its steps. */
export function parseSteps(text: string, marker: string): Inside[] {
  const rows = text.split('\n').map((line) => line.split('|'));
  const named = rows.filter(([, , name]) => name === marker);
  const jobs = named.filter(([kind, id = '']) => kind === 'job' && /^\d+(?:_\d+)?$/.test(id));
  const steps = named.filter(([kind, id = '']) => kind === 'step' && /^\d+(?:_\d+)?\.\w+$/.test(id));
  return (jobs.length > 0 ? jobs : steps).map(([kind = '', id = '', , node = '', state = 'RUNNING', reason = '']) => ({
    ...{ kind: 'step', id, name: node === '' ? `${kind} ${id} of Slurm` : `${kind} ${id} of Slurm on ${node}` },
    state: state === 'PENDING' || state === 'CONFIGURING' ? 'waiting' : 'running',
    ...{ pid: 0, startTicks: undefined, exitStatus: undefined, isOutOfMemory: false, node },
    says: state === 'PENDING' ? `${state}, ${reason}` : state,
  }));
}

/** SIGKILL ends the allocation as well: a srun that was killed does not give it back. */
export function signalStep(id: string, signal: 'SIGTERM' | 'SIGKILL'): string {
  const word = quoteShell(id);
  if (signal === 'SIGTERM') return `scancel --signal=TERM ${word}`;
  return `scancel --signal=KILL ${word}; scancel ${word}`;
}
