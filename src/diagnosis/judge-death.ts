/**
 * Whether the server ended, and of what. Pure. The first cause in time is the cause; what other ranks and wrappers say after it
 * are its echoes.
 */
import { peelLine } from '../engine/log-envelope.ts';
import type { Account, Found, Sighting } from './account.ts';
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
  const fatal = account.found.filter(({ rule }) => rule.state === 'crashed');
  const loud = fatal.filter((found) => found.rule.onlyIfDead !== true && !isMild(found));
  const proof = [...loud, ...account.deaths].sort((a, b) => a.line - b.line);
  const last = proof.at(-1);
  if (last === undefined) return diedUnexplained(account, fatal);
  if (livedOn(account.lifeAfter, last.at)) return undefined;
  return { cause: firstCause(fatal.filter((found) => !wasOutlived(found, account))), proof, isGuess: false };
}

/** A line that calls itself a warning or less ends nothing by itself. */
function isMild({ text }: Sighting): boolean {
  return /^(DEBUG|INFO|WARNING)$/.test(peelLine(text).level);
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

function diedUnexplained({ tail, openTraceback }: Account, fatal: readonly Found[]): Death | undefined {
  if (openTraceback === undefined || !openTraceback.text.startsWith('Traceback')) return undefined;
  const last = tail.filter(({ text }) => text.trim() !== '').slice(-LAST_LINES);
  const uncaught = last.find(({ text }) => UNCAUGHT.test(text.trimEnd()));
  if (uncaught === undefined || uncaught.line < openTraceback.line) return undefined;
  return { cause: firstCause(fatal), proof: [{ ...uncaught, at: undefined }], isGuess: true };
}
