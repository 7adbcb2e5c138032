/**
 * Whether the server ended, and of what. Pure. The first cause in time is the cause; what other ranks and wrappers say after it
 * are its echoes.
 */
import { peelLine } from '../engine/log-envelope.ts';
import type { Account, Found, Sighting } from './account.ts';
import { hasWorked } from './account-view.ts';
import type { Weight } from './rule.ts';
import { livedOn } from './track-findings.ts';

export interface Death {
  /** Undefined where nothing says why. */
  readonly cause: Found | undefined;
  readonly proof: readonly Sighting[];
  /** Only a traceback at the end of the log says so. */
  readonly isGuess: boolean;
}

const WEIGHTS: Readonly<Record<Weight, number>> = { root: 0, symptom: 1, wrapper: 2 };

export function judgeDeath(account: Account): Death | undefined {
  // What a start waited for in vain is what ended it, if it ended.
  const fatal = account.found.filter(
    ({ rule }) => rule.state === 'crashed' || (rule.state === 'hung' && rule.phase === 'distributed-init'),
  );
  const loud = fatal.filter((found) => found.rule.state === 'crashed' && found.rule.onlyIfDead !== true && !isMild(found));
  const proof = [...loud, ...account.deaths].sort((a, b) => a.line - b.line);
  const last = proof.at(-1);
  if (last === undefined) return diedUnexplained(account, fatal);
  if (livedOn(account.lifeAfter, last.at)) return undefined;
  return { cause: firstCause(fatal.filter((found) => !wasOutlived(found, account))), proof, isGuess: false };
}

/** What a line calls itself: the levels of both engines, of Python's warnings, and of torch's own log. */
const MILD = /(?:^|[\s[(|-])(?:DEBUG|INFO|WARNING|WARN)(?:[\s:\])-]|$)|\b\w+Warning:|\[rank\d+\]:\[W/;
/** NCCL says WARN to what ends it. */
const NCCL = /NCCL WARN/;
const RAISED = /^\W*(?:\w+\.)*\w*(?:Error|Exception)\b/;
/** Where a line says what it is. */
const HEAD = 160;

/**
 * A line that calls itself a warning or less ends nothing by itself. SGLang's own lines have no level: there a text that
 * also stands in warnings counts only where it is the exception itself.
 */
function isMild({ text, rule }: Found): boolean {
  const head = text.slice(0, HEAD);
  if (NCCL.test(head)) return false;
  if (MILD.test(head)) return true;
  if (rule.isAlsoWarned !== true) return false;
  const { at, message } = peelLine(text);
  return at !== '' && text.includes(`[${at}`) && !RAISED.test(message);
}

/** The server became ready after it: it did not end the server. */
function wasOutlived(found: Found, { ready }: Account): boolean {
  return ready !== undefined && ready.line > found.line;
}

/** The weightiest kind first; of one kind the first in time. */
export function firstCause(found: readonly Found[]): Found | undefined {
  return [...found].sort((a, b) => {
    return WEIGHTS[a.rule.weight] - WEIGHTS[b.rule.weight] || before(a, b);
  })[0];
}

/** By time where both have one that differs, else by place. */
function before(a: Sighting, b: Sighting): number {
  if (a.at !== undefined && b.at !== undefined && a.at !== b.at) return a.at - b.at;
  return a.line - b.line;
}

/** `ValueError: …` at the end of a traceback that begins at the margin: the main process ended by it. */
const UNCAUGHT = /^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?:: .*)?$/;
const LAST_LINES = 6;

/** Only of a start: a server at work prints a traceback for a request that it could not read, and goes on. */
function diedUnexplained(account: Account, fatal: readonly Found[]): Death | undefined {
  const { tail, openTraceback, ready } = account;
  if (openTraceback === undefined || !openTraceback.text.startsWith('Traceback')) return undefined;
  if (ready !== undefined || hasWorked(account)) return undefined;
  const last = tail.filter(({ text }) => text.trim() !== '').slice(-LAST_LINES);
  const uncaught = last.find(({ text }) => UNCAUGHT.test(text.trimEnd()));
  if (uncaught === undefined || uncaught.line < openTraceback.line) return undefined;
  return { cause: firstCause(fatal), proof: [{ ...uncaught, at: undefined }], isGuess: true };
}
