/**
 * Times in log lines, in milliseconds that can be compared within one log. Pure.
 * Logs seldom name a zone: a time without one is taken as it stands, and so is `--now`. vLLM writes no year: the one that brings
 * the time nearest to what was read before it, else the last one before now.
 */

const FULL = /\b(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?/;
/** `INFO 10-17 09:33:49 [`, and Python's glog `[rank0]:[W726 09:09:48.66`. */
const NO_YEAR = /(?:^|[\s\]])(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)/;
const SYSLOG = /^([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) /;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** A leap year, so that every day exists. */
const UNKNOWN_YEAR = 2000;

/** What is known of the time around a line. */
export interface TimeContext {
  /** A time read before in the same log. */
  readonly before?: number;
  /** The log was written before this. */
  readonly now?: number;
}

export function readTime(raw: string, context: TimeContext): number | undefined {
  // A time stands in the first part of a line; a long line is not searched.
  const text = raw.length > 300 ? raw.slice(0, 300) : raw;
  const short = NO_YEAR.exec(text);
  if (short !== null) return withYear(short.slice(1).map(Number), context);
  const full = FULL.exec(text);
  if (full !== null) {
    const [, year = 0, month = 1, day = 1, hour, minute, second] = full.map(Number);
    const at = Date.UTC(year, month - 1, day, hour, minute, second);
    return Number.isNaN(at) ? undefined : at;
  }
  const syslog = SYSLOG.exec(text);
  if (syslog === null) return undefined;
  const [, month = '', ...rest] = syslog;
  return withYear([MONTHS.indexOf(month) + 1, ...rest.map(Number)], context);
}

/** A day, for clocks that differ by their zone. */
const SLACK_MS = 86_400_000;

function withYear([month = 1, day = 1, hour = 0, minute = 0, second = 0]: readonly number[], { before, now }: TimeContext) {
  const inYear = (year: number) => Date.UTC(year, month - 1, day, hour, minute, second);
  if (before !== undefined) {
    const year = new Date(before).getUTCFullYear();
    return [year - 1, year, year + 1].map(inYear).sort((a, b) => Math.abs(a - before) - Math.abs(b - before))[0];
  }
  if (now === undefined) return inYear(UNKNOWN_YEAR);
  const year = new Date(now).getUTCFullYear();
  return inYear(year) <= now + SLACK_MS ? inYear(year) : inYear(year - 1);
}
