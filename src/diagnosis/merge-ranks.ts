/**
 * Logs of several ranks or nodes → one account. Pure. The first cause in time is kept first, the least advanced rank says how far
 * the start is, and the worst figures count, because the engine itself sizes by the worst rank.
 */
import type { Account, Found, NamedAccount, Sighting } from './account.ts';
import { phaseOrder } from './phases.ts';

export interface Merged {
  readonly account: Account;
  readonly fileOf: (sighting: Sighting) => string;
}

export function mergeAccounts(logs: readonly NamedAccount[]): Merged {
  const [first, ...rest] = logs;
  if (first === undefined) throw new Error('a diagnosis needs a log');
  const files = new Map<Sighting, string>();
  for (const { file, account } of logs) for (const sighting of sightingsOf(account)) files.set(sighting, file);
  const fileOf = (sighting: Sighting) => files.get(sighting) ?? (rest.length === 0 ? '' : first.file);
  if (rest.length === 0) return { account: first.account, fileOf: () => first.file };
  return { account: logs.map(({ account }) => account).reduce(mergeTwo), fileOf };
}

function sightingsOf({ found, deaths, notices, work, ready, lastBar, phaseBegan, graphs, openTraceback }: Account): Sighting[] {
  const single = [ready, lastBar, phaseBegan, graphs, openTraceback].filter((one) => one !== undefined);
  return [...found, ...deaths, ...notices, ...work, ...single];
}

function mergeTwo(one: Account, other: Account): Account {
  // The one that serves or has come further speaks for the work; the one that is behind, for the start.
  const behind = phaseOrder(other.phase) < phaseOrder(one.phase) && other.phase !== '' ? other : one.phase === '' ? other : one;
  const busier = other.work.length > one.work.length ? other : one;
  const ahead = one.facts.poolTokens === undefined && other.facts.poolTokens !== undefined ? other : one;
  return {
    ...behind,
    facts: { ...ahead.facts, lines: one.lines + other.lines },
    lines: one.lines + other.lines,
    recognised: one.recognised + other.recognised,
    lastAt: latest(one.lastAt, other.lastAt),
    ready: one.ready ?? other.ready,
    work: busier.work,
    answers: busier.answers,
    retractions: [...one.retractions, ...other.retractions],
    notices: one.notices.length > other.notices.length ? one.notices : other.notices,
    noticesAtWork: Math.max(one.noticesAtWork, other.noticesAtWork),
    lastProgress: later(one.lastProgress, other.lastProgress),
    communicators: one.communicators ?? other.communicators,
    isMultiNode: one.isMultiNode || other.isMultiNode,
    hasLoaded: one.hasLoaded && other.hasLoaded,
    found: inTime([...one.found, ...other.found]),
    deaths: [...one.deaths, ...other.deaths],
    lifeAfter: one.deaths.length + one.found.length > 0 ? one.lifeAfter : other.lifeAfter,
    openTraceback: one.openTraceback ?? other.openTraceback,
    harmless: [...one.harmless, ...other.harmless],
    startsBefore: Math.max(one.startsBefore, other.startsBefore),
  };
}

function inTime(found: Found[]): Found[] {
  return found.sort((a, b) => (a.at ?? Number.POSITIVE_INFINITY) - (b.at ?? Number.POSITIVE_INFINITY));
}

function latest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}

function later(one: Sighting | undefined, other: Sighting | undefined): Sighting | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (other.at ?? 0) > (one.at ?? 0) ? other : one;
}
