/**
 * The beginning and the end of what a command prints, however long it is: the log that docker or the journal keeps. One command for the
 * machine, in the frames of a survey. Pure: words in, script out, and what it said back.
 *
 * Promise: no more is asked for than fits and no longer than `waitSeconds`. The lines between the two are counted where all of it
 * passes by in that time; end and count then come from one pass, so that lines that are printed meanwhile are in both or in none.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import { readSurvey } from './read-survey.ts';
import { HEAD_MOST, SURVEY_FUNCTIONS } from './survey-functions.ts';
import { HEAD_PACKED, HEAD_PLAIN, TAIL, TAIL_PLAIN } from './survey-script.ts';

export interface PrintedQuestion {
  /** Letters and digits, drawn anew. */
  readonly nonce: string;
  /** Words that print all of it, one line feed behind each line. */
  readonly whole: readonly string[];
  /** Words that print its last lines. */
  readonly last: readonly string[];
  readonly waitSeconds: number;
}

export interface PrintedEnds {
  readonly beginning: string;
  /** Its first line may be the half of one; lines of the beginning may be in it. */
  readonly ending: string;
  /** Of all of it; undefined = not counted in time. */
  readonly lines: number | undefined;
}

export function renderPrintedEnds({ nonce, whole, last, waitSeconds }: PrintedQuestion): string {
  const [all, end] = [whole, last].map((words) => words.map(quoteShell).join(' '));
  return [
    '{',
    `n=${nonce}; jobs=; LC_ALL=C; export LC_ALL`,
    SURVEY_FUNCTIONS,
    `most=${HEAD_PACKED}; end=${TAIL}`,
    `[ -n "$isplain" ] && most=${HEAD_PLAIN} end=${TAIL_PLAIN}`,
    `whole() { soon ${waitSeconds} ${all} 2>&1; }`,
    // Of a packed log no more is packed than of a file; without gzip it is cut as it stands.
    'first() { whole | head -c "$top" | $zip | head -c "$most"; }',
    `[ -n "$isplain" ] && top=$most || top=${HEAD_MOST}`,
    `last() { soon ${waitSeconds} ${end} 2>&1 | tail -c "$end" | $zip; }`,
    'count() {',
    '  mkfifo "$d/pipe" || return 1',
    '  wc -l <"$d/pipe" >"$d/lines" & c=$!',
    '  { whole; echo $? >"$d/whole"; } | tee "$d/pipe" | tail -c "$end" >"$d/tail"',
    '  wait $c; read -r s <"$d/whole"; [ "$s" = 0 ] || return 1',
    '  cat "$d/lines" "$d/tail"',
    '}',
    'job h first; job t last; job w count',
    `until_done ${Math.round((waitSeconds + 1) * 10)} $jobs`,
    'out h',
    'if [ "$(cat "$d/w.rc" 2>/dev/null)" = 0 ]; then out w; else out t; fi',
    `printf '%s end 0 0\\n\\n' "$n"`,
    '}',
    '',
  ].join('\n');
}

/** undefined: nothing came. */
export function readPrintedEnds(said: string, nonce: string): PrintedEnds | undefined {
  const { parts } = readSurvey(said, nonce);
  if (parts.size === 0) return undefined;
  const text = (name: string) => parts.get(name)?.bytes.toString('utf8') ?? '';
  const counted = text('w');
  const [, lines] = /^\s*(\d+)\n/.exec(counted) ?? [];
  if (lines === undefined) return { beginning: text('h'), ending: text('t'), lines: undefined };
  return { beginning: text('h'), ending: counted.slice(counted.indexOf('\n') + 1), lines: Number(lines) };
}
