/** The answer of `aerie preview`: records as a person reads them, and whether they are exact. Pure. */
import type { PreviewReport } from '../../app/preview.ts';
import { saidIn } from '../../app/said.ts';
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
  for (const { partition, reason, count, line, detail } of report.refused)
    lines.push(
      `refused   ${partition}  ${formatCount(count)} × ${reason}, the first in row ${line}: ${detail}   (aerie explain ${reason})`,
    );
  for (const { partition, id, reason, because } of report.setAsides)
    lines.push(`set aside ${partition}/${id}  ${reason}: ${because}`);
  for (const { server, exact, how, because, becauseWithTools } of report.expected) {
    lines.push(`${server.padEnd(9)} ${exact ? `exact, by ${how}` : `NOT exact: ${because}`}`);
    if (becauseWithTools !== because) lines.push(`${''.padEnd(9)} NOT exact with tools: ${becauseWithTools}`);
  }
  const why = report.because === '' ? 'there is no record to judge by' : report.because;
  lines.push(report.exact ? 'exact     yes: token ids of prompt and answer come from the engine' : `exact     NO: ${why}`);
  return lines.join('\n');
}

function renderRecord(record: Previewed): string[] {
  const { partition, id, flags } = record;
  const lines = [`── ${partition}/${id}${flags.length > 0 ? `  [${flags.join(', ')}]` : ''}`];
  for (const { message, turn } of saidIn(record)) {
    const { role, content, toolCalls = [] } = message;
    if (turn !== undefined) lines.push(...renderAnswer(turn));
    else lines.push(`${(role === 'assistant' ? 'given' : role).padEnd(9)} ${shorten(content)}`, ...toolCalls.map(renderCall));
  }
  return lines;
}

function renderAnswer({ reasoning, text, toolCalls, usage, finish }: Previewed['turns'][number]): string[] {
  const ids = `${formatCount(usage.prompt)} prompt + ${formatCount(usage.completion)} answer tokens, ${finish}`;
  const thinking = reasoning === '' ? [] : [`thinking  ${shorten(reasoning)}`];
  const answer = text === '' && toolCalls.length > 0 ? [] : [`answer    ${shorten(text)}`];
  return [...thinking, ...answer, ...toolCalls.map(renderCall), `          (${ids})`];
}

function renderCall({ name, arguments: text }: Previewed['turns'][number]['toolCalls'][number]): string {
  return `call      ${shorten(`${name}(${text})`)}`;
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS)}…` : line;
}
