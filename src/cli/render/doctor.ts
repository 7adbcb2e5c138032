/** The answer of `aerie doctor`. Pure but for colour. */

import type { DoctorReport } from '../../app/doctor.ts';
import { stdoutColour as pc } from './colour.ts';

const COLOUR = { ok: pc.green, warning: pc.yellow, fails: pc.red } as const;

export function renderDoctor({ folder, run, checks, isFit }: DoctorReport): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, verdict, says, next }) => {
    const line = `${COLOUR[verdict](verdict.padEnd('warning'.length))}  ${name.padEnd(width)}  ${says}`;
    return next === ''
      ? [line]
      : [line, `${' '.repeat(width + 11)}${pc.dim('try')} ${next.replaceAll('\n', `\n${' '.repeat(width + 15)}`)}`];
  });
  const count = (wanted: string) => checks.filter(({ verdict }) => verdict === wanted).length;
  const failed = count('fails');
  const sum = isFit ? 'nothing fails' : `${failed} ${failed === 1 ? 'check fails' : 'checks fail'}`;
  const warned = count('warning');
  const warnings = warned === 0 ? '' : `, ${warned} ${warned === 1 ? 'warning' : 'warnings'}`;
  return [...lines, '', `${run === '' ? folder : `run ${run} in ${folder}`}: ${sum}${warnings}`].join('\n');
}
