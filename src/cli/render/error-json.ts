/** An error as the one JSON document of `--json`: the same keys for every error. Pure. */
import type { AerieError } from '../../base/errors.ts';

export function renderErrorJson({ code, message, detail }: AerieError): string {
  const { because = '', remedy, evidence = [], facts = {} } = detail;
  return `${JSON.stringify({ aerie: 1, error: { code, message, because, evidence, remedy, facts } })}\n`;
}
