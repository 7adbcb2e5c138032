/**
 * `aerie explain [CODE]`: the page of an error code, a finding of `check` or a reason why an input row is refused. Reads
 * nothing and loads tables alone, so that it works where nothing else does. A code that is not known names the nearest.
 */
import { ERROR_PAGES, isErrorCode, renderErrorPage } from '../base/error-pages.ts';
import { AerieError, ERRORS, EXIT_CODE } from '../base/errors.ts';
import { REJECTION_REASONS, REJECTION_REMEDY, REJECTION_SENTENCE, type RejectionReason } from '../dataset/rejection.ts';
import { FINDING_CODES, FINDINGS, type FindingCode } from '../delivery/findings/codes.ts';
import { findNearest } from '../spec/nearest.ts';

export interface ExplainInput {
  /** Left out: all codes. */
  readonly code?: string;
}

export interface ExplainReport {
  /** One page, or a line for every code. */
  readonly pages: readonly ExplainedCode[];
  readonly isList: boolean;
}

export interface ExplainedCode {
  readonly code: string;
  readonly kind: 'error' | 'finding' | 'rejection';
  readonly title: string;
  /** Markdown. */
  readonly page: string;
  /** Exit code of an error, 0 for the others. */
  readonly exitCode: number;
}

export async function runExplain({ code }: ExplainInput): Promise<ExplainReport> {
  const all = [...explainErrors(), ...explainFindings(), ...explainRejections()];
  if (code === undefined) return { pages: all, isList: true };
  const wanted = code.trim().toLowerCase();
  // One word may name a finding and a rejection (empty-content): both pages are shown.
  const pages = all.filter((page) => page.code === wanted);
  if (pages.length > 0) return { pages, isList: false };
  throw unknownCode(code, all);
}

function explainErrors(): ExplainedCode[] {
  return Object.keys(ERROR_PAGES)
    .filter(isErrorCode)
    .map((code) => {
      const { title, fault } = ERRORS[code];
      return { code, kind: 'error', title, page: renderErrorPage(code), exitCode: EXIT_CODE[fault] };
    });
}

function explainFindings(): ExplainedCode[] {
  return FINDING_CODES.map((code: FindingCode) => {
    const { severity, sentence, next } = FINDINGS[code];
    const title = `Records ${sentence}`;
    const meaning =
      severity === 'error'
        ? 'An error: a trainer would reject these records or mislearn from them, and `aerie check` exits 1.'
        : 'A warning: the records are right, and this should be known.';
    const page = `# ${code}\n\n${title}.\n\n**What it means.** ${meaning}\n\n**What to do.** ${next}`;
    return { code, kind: 'finding', title, page, exitCode: 0 };
  });
}

function explainRejections(): ExplainedCode[] {
  return REJECTION_REASONS.map((code: RejectionReason) => {
    const title = REJECTION_SENTENCE[code].replace(/\.$/, '');
    const page = [
      `# ${code}`,
      `${title}.`,
      '**What it means.** An input row gives no prompt. It is counted, named and kept out; the run goes on.',
      '**Where to look.** `rejected/PARTITION.ndjson` in the run folder has line, reason and place of each such row.',
      `**What to do.** ${REJECTION_REMEDY[code] ?? 'Correct such rows, or leave them out.'} In a run that has begun, give the corrected rows as a partition of their own; where all rows of a partition were refused, the same command reads the corrected file anew.`,
    ].join('\n\n');
    return { code, kind: 'rejection', title, page, exitCode: 0 };
  });
}

function unknownCode(code: string, all: readonly ExplainedCode[]): AerieError {
  const codes = all.map((page) => page.code);
  const nearest = findNearest(code, codes) ?? codes.find((known) => known.split('.').includes(code));
  const shown = code.slice(0, 80); // a line of a terminal
  return new AerieError('usage.flag', `There is no code ${JSON.stringify(shown)}.`, {
    remedy:
      nearest === undefined ? 'aerie explain   lists all codes' : `aerie explain ${nearest}\naerie explain   lists all codes`,
  });
}
