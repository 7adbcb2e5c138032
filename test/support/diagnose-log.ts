/** A verdict of a log given as text, as `aerie diagnose` gives it; and the corpus with what is expected of each log. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Account, NamedAccount } from '../../src/diagnosis/account.ts';
import { diagnoseServers } from '../../src/diagnosis/diagnose.ts';
import { LogReader } from '../../src/diagnosis/read-log.ts';
import { CarriedLog } from '../../src/diagnosis/split-carriers.ts';
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
  return reader.account();
}

function serversOf(text: string, now?: number): NamedAccount[] {
  const log = new CarriedLog(now === undefined ? {} : { now });
  log.feed(Buffer.from(text));
  return log.end().map(({ carrier, account }) => ({ file: carrier, account }));
}

/** `isSilent`: hours after its last line. */
export function verdictOf(text: string, isSilent = false): Verdict {
  if (!isSilent) return diagnoseServers(serversOf(text));
  const now = (accountOf(text).lastAt ?? 0) + 3 * HOURS;
  return diagnoseServers(serversOf(text, now), { now, lastWritten: 0 });
}

export function isRight({ state, acceptStates = [], cause }: Case, verdict: Verdict): boolean {
  return verdict.cause === cause && (verdict.state === state || acceptStates.includes(verdict.state));
}
