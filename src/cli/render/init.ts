/** The answer of `aerie init`. Pure. */
import type { InitReport } from '../../app/init.ts';

export function renderInit(report: InitReport, typed: string): string {
  const lines = [`wrote ${report.file}`];
  if (report.sourceMissing) lines.push('its prompts file is not there yet: put it there, or correct from: in the file');
  lines.push(`next  aerie preview ${typed}   then   aerie run ${typed}`);
  return lines.join('\n');
}
