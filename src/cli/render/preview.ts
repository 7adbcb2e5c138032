/** The answer of `aerie preview`: records as a person reads them, and whether they are exact. Pure. */
import type { PreviewReport } from '../../app/preview.ts';
import { formatCount } from '../../base/units.ts';

type Previewed = PreviewReport['records'][number];

/** About a screen line or three per message; the records themselves are in `--json`. */
const MOST_CHARACTERS = 300;

export function renderPreview(report: PreviewReport): string {
  const lines = report.records.flatMap((record) => [...renderRecord(record), '']);
  const source = report.records[0]?.provenance;
  if (source !== undefined)
    lines.push(
      `model     ${source.model}, ${source.weights} weights, ${source.kvCacheDtype} KV cache, ${source.engine} ${source.engineVersion}`,
    );
  if (report.rejected > 0) lines.push(`refused   ${formatCount(report.rejected)} input rows among those read`);
  const why = report.because === '' ? 'there is no record to judge by' : report.because;
  lines.push(report.exact ? 'exact     yes: token ids of prompt and answer come from the engine' : `exact     NO: ${why}`);
  return lines.join('\n');
}

function renderRecord({ partition, id, messages, turns, flags }: Previewed): string[] {
  const lines = [`── ${partition}/${id}${flags.length > 0 ? `  [${flags.join(', ')}]` : ''}`];
  let turn = 0;
  for (const { role, content } of messages) {
    lines.push(`${role.padEnd(9)} ${shorten(content)}`);
    const answer = role === 'user' ? turns[turn++] : undefined;
    if (answer !== undefined) lines.push(...renderAnswer(answer));
  }
  return lines;
}

function renderAnswer({ reasoning, text, usage, finish }: Previewed['turns'][number]): string[] {
  const ids = `${formatCount(usage.prompt)} prompt + ${formatCount(usage.completion)} answer tokens, ${finish}`;
  const thinking = reasoning === '' ? [] : [`thinking  ${shorten(reasoning)}`];
  return [...thinking, `answer    ${shorten(text)}`, `          (${ids})`];
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS)}…` : line;
}
