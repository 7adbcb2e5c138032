/** A verdict of a log given as text, as `aerie diagnose` gives it; and the corpus with what is expected of each log. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Account } from '../../src/diagnosis/account.ts';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { LogReader } from '../../src/diagnosis/read-log.ts';
import type { Phase, State, Verdict } from '../../src/diagnosis/verdict.ts';

const CORPUS = join(import.meta.dirname, '..', 'corpus');

export interface Case {
  readonly name: string;
  readonly text: string;
  readonly engine: string;
  readonly state: State;
  readonly acceptStates?: readonly State[];
  readonly phase: Phase | null;
  readonly cause: string;
  readonly evidence: readonly string[];
  /** Nothing followed its last line: judged by a clock well past it. */
  readonly isSilent?: boolean;
  readonly isHeldOut: boolean;
}

export function readCorpus(): Case[] {
  const expected = JSON.parse(readFileSync(join(CORPUS, 'expected.json'), 'utf8')) as Record<string, Omit<Case, 'name' | 'text'>>;
  return Object.entries(expected).map(([name, one]) => ({
    ...one,
    name,
    text: readFileSync(join(CORPUS, 'logs', `${name}.log`), 'utf8'),
  }));
}

const HOURS = 3_600_000;

export function accountOf(text: string, now?: number): Account {
  const reader = new LogReader(now === undefined ? {} : { now });
  reader.feed(Buffer.from(text));
  return reader.end();
}

/** `isSilent`: hours after its last line. */
export function verdictOf(text: string, isSilent = false): Verdict {
  const account = accountOf(text);
  if (!isSilent) return diagnose([{ file: '', account }]);
  const now = (account.lastAt ?? 0) + 3 * HOURS;
  return diagnose([{ file: '', account: accountOf(text, now) }], { now, lastWritten: 0 });
}

export function isRight({ state, acceptStates = [], cause }: Case, verdict: Verdict): boolean {
  return verdict.cause === cause && (verdict.state === state || acceptStates.includes(verdict.state));
}
