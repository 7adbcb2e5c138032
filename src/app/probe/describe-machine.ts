/** What a survey shows of a machine, in words: its GPUs, a log that could not be read, a machine that is away. Pure. */
import { AerieError } from '../../base/errors.ts';
import { formatCount } from '../../base/units.ts';
import { type SshNames, whatToTry } from '../../machine/ssh/what-to-try.ts';
import type { Survey } from '../../machine/survey/survey.ts';
import type { ProbedMachine } from './report.ts';

export function describeGpus({ gpus, apps, table }: Survey): string[] {
  if (gpus === undefined) return [];
  if (gpus.kind === 'absent') return [];
  if (gpus.kind === 'failed') return [gpus.because];
  return gpus.gpus.map(({ index, uuid, name, usedMiB, totalMiB, utilisationPercent }) => {
    const holders = apps.filter(({ gpuUuid }) => gpuUuid === uuid);
    const who = holders.map(({ pid }) => `pid ${pid}${table.has(pid) ? '' : ' (not seen from here)'}`).join(', ');
    const busy = utilisationPercent === undefined ? '' : `, ${utilisationPercent} % busy`;
    return `GPU ${index} ${name}: ${formatCount(usedMiB)} of ${formatCount(totalMiB)} MiB used${busy}${who === '' ? '' : `, held by ${who}`}`;
  });
}

export function sayUnread(kind: string, path: string): string {
  const where = path === '' ? 'its stdout' : path;
  switch (kind) {
    case 'other':
      return `its log: its stdout goes to ${where}, which is no file; start it with >server.log 2>&1, or give --log`;
    case 'not-permitted':
      return `its log: ${where} may not be read by this user. Try:  ${path === '' ? 'the same as root' : `sudo cat ${path}`}`;
    case 'late':
      return `its log: ${where} was not read in time`;
    default:
      return `its log: there is no ${where}`;
  }
}

/** For errors of a place that nobody can open. */
export function awayError({ name, because }: Pick<ProbedMachine, 'name' | 'because'>, ssh: SshNames): AerieError {
  return new AerieError('machine.unreachable', `${name} cannot be reached: ${because}`, {
    remedy: `Nothing was changed there; what runs there goes on. ${whatToTry(undefined, ssh)}`,
  });
}
