/** The answer of `aerie init`. Pure. */
import type { InitReport } from '../../app/init.ts';

export function renderInit(report: InitReport, typed: string): string {
  const lines = [`wrote ${report.file}`];
  if (report.sourceMissing) lines.push('its prompts file is not there yet: put it there, or correct from: in the file');
  const first = report.machine === '' ? `aerie preview ${typed}` : `aerie doctor ${typed}`;
  lines.push(`next  ${first}   then   aerie run ${typed}`);
  return lines.join('\n');
}
