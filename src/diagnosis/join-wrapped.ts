/**
 * Lines as a terminal broke them, and records that several ranks wrote into one line. Pure.
 * A terminal breaks anywhere, a pager at words: then the space is gone. Nobody can tell which from one line, so both are tried.
 */
import type { FoundLine } from './scan-lines.ts';

/** A line that says who wrote it, when, or what carried it, begins a record. */
const BEGINS =
  /^\s*(?:\[\d{4}-|\[rank\d|\[pod\/|\(\w[\w ]*pid|\(\w+\) |DEBUG |INFO[ :]|WARNING[ :]|ERROR[ :]|CRITICAL |\d{4}-\d\d-\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:|[\w.-]+ +\| |\d{1,4}: )/;
/** Lines that stand for themselves although they name no writer: bars, frames, empty ones. */
const OWN_LINE = /\d\/\d+ \[|^\s*File "|^Traceback|^\s*$/;
const LINES_AROUND = 3;
/** `[2026-01-30 01:13:16 TP0] ` in the middle of a line: another rank's record. */
const RECORD = /(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [A-Z]+\d+)*\] )/;

/** The parts of a broken record, in order: what stands before the line if the line begins no record, and what follows it. */
export function brokenParts(found: FoundLine, text: string): string[] {
  const above: string[] = [];
  if (!BEGINS.test(text)) {
    for (const line of found.before(LINES_AROUND)) {
      above.unshift(line);
      if (BEGINS.test(line)) break;
    }
  }
  return [...above, text, ...below(found)];
}

/** The line with what was broken off behind it. */
export function partsBelow(found: FoundLine, text: string): string[] {
  return [text, ...below(found)];
}

export function beginsRecord(text: string): boolean {
  return BEGINS.test(text);
}

function below(found: FoundLine): string[] {
  const lines: string[] = [];
  for (const line of found.after(LINES_AROUND)) {
    if (BEGINS.test(line) || OWN_LINE.test(line)) break;
    lines.push(line);
  }
  return lines;
}

/** The records of one line; mostly the line itself. A carrier's prefix before the first one is no record. */
export function splitRecords(text: string): string[] {
  if (!text.includes('[20', 1)) return [text];
  const [first = '', ...rest] = text.split(RECORD);
  if (rest.length === 0) return [text];
  // What docker, kubectl or journald put before it is short; a bar that was not ended is not.
  return first.length < 80 && rest.length === 1 && !/\d\/\d/.test(first) ? [text] : [first, ...rest];
}
