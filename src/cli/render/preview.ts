/** The answer of `aerie preview`: records as a person reads them, and whether they are exact. Pure. */
import type { PreviewReport } from '../../app/preview.ts';
import { formatCount } from '../../base/units.ts';

/** About a screen line or three per message; the records themselves are in `--json`. */
const MOST_CHARACTERS = 300;

export function renderPreview(report: PreviewReport): string {
  const lines: string[] = [];
  for (const { partition, id, messages, turns, flags } of report.records) {
    lines.push(`── ${partition}/${id}${flags.length > 0 ? `  [${flags.join(', ')}]` : ''}`);
    let turn = 0;
    for (const { role, content } of messages) {
      lines.push(`${role.padEnd(9)} ${shorten(content)}`);
      const answer = role === 'user' ? turns[turn++] : undefined;
      if (answer === undefined) continue;
      if (answer.reasoning !== '') lines.push(`thinking  ${shorten(answer.reasoning)}`);
      const ids = `${formatCount(answer.usage.prompt)} prompt + ${formatCount(answer.usage.completion)} answer tokens, ${answer.finish}`;
      lines.push(`answer    ${shorten(answer.text)}`, `          (${ids})`);
    }
    lines.push('');
  }
  const source = report.records[0]?.provenance;
  if (source !== undefined)
    lines.push(
      `model     ${source.model}, ${source.weights} weights, ${source.kvCacheDtype} KV cache, ${source.engine} ${source.engineVersion}`,
    );
  if (report.rejected > 0) lines.push(`refused   ${formatCount(report.rejected)} input rows among those read`);
  lines.push(
    report.exact
      ? 'exact     yes: token ids of prompt and answer come from the engine'
      : `exact     NO: ${report.because === '' ? 'there is no record to judge by' : report.because}`,
  );
  return lines.join('\n');
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS)}…` : line;
}
