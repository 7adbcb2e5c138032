/** What a rehearsal came to: its launches from the events, its pace from the log of the launch that lived. Pure. */
import type { Event } from '../../base/events.ts';
import type { LoadSample } from '../../diagnosis/log-facts.ts';

export interface RehearsedLaunch {
  readonly n: number;
  /** As a person would type it, the lookalike's own words left out. */
  readonly flags: string;
  /** Why it is not as the launch before; '' = nothing is otherwise. */
  readonly because: string;
  /** How it ended; '' = it lived to the end. */
  readonly ended: string;
  /** 0 = it was never ready. */
  readonly poolTokens: number;
  /** 0 = not known. */
  readonly predictedTokens: number;
  readonly freeAfterGraphsGiB: number;
  readonly kvCacheDtype: string;
}

/** Launches of one server, in order. */
export function listLaunches(server: string, events: readonly Event[]): RehearsedLaunch[] {
  const launches = new Map<number, RehearsedLaunch>();
  let because = '';
  for (const { kind, subject, facts } of events) {
    if (subject !== server) continue;
    const n = Number(facts['launch'] ?? 0);
    const known = launches.get(n);
    if (kind === 'launch.changed') because = String(facts['because']);
    if (kind === 'launch.starting') {
      launches.set(n, { ...NOT_READY, n, flags: flagsOf(String(facts['line'] ?? '')), because });
      because = '';
    }
    if (known === undefined) continue;
    if (kind === 'launch.ended') launches.set(n, { ...known, ended: String(facts['how']) });
    if (kind === 'launch.verified')
      launches.set(n, {
        ...known,
        poolTokens: Number(facts['poolTokens'] ?? 0),
        predictedTokens: Number(facts['predictedTokens'] ?? 0),
        freeAfterGraphsGiB: Number(facts['freeAfterGraphsGiB'] ?? 0),
        kvCacheDtype: String(facts['kvCacheDtype'] ?? ''),
      });
  }
  return [...launches.values()];
}

const NOT_READY = { ended: '', poolTokens: 0, predictedTokens: 0, freeAfterGraphsGiB: 0, kvCacheDtype: '' } as const;

/** The engine's words of a launch: what stands behind the lookalike's own. */
export function engineWords(line: string): string {
  return line.split(' -- ').at(-1) ?? '';
}

/** Without what every launch has. */
function flagsOf(line: string): string {
  return engineWords(line)
    .replace(/(^| )--?(host|port|model-path|model) \S+/g, '')
    .trim();
}

export interface SettledLoad {
  readonly running: number;
  readonly queued: number;
  readonly tokensPerSecond: number;
}

/** Where nothing ever waited, a server counts as full from this share of the most that ever ran: below are the beginning and the end. */
const FULL = 0.8;

/**
 * The means over the time when the server was full, its first half left out: all requests began together, so that contexts
 * are younger there than in a long run, and more of them fit. Undefined where it never worked.
 */
export function settledLoad(samples: readonly LoadSample[]): SettledLoad | undefined {
  const working = samples.filter(({ running }) => running > 0);
  const most = working.reduce((so, { running }) => Math.max(so, running), 0);
  const waiting = working.filter(({ queued }) => queued > 0);
  const full = waiting.length > 0 ? waiting : working.filter(({ running }) => running >= FULL * most);
  const settled = full.slice(Math.floor(full.length / 2));
  if (settled.length === 0) return undefined;
  const mean = (of: (sample: LoadSample) => number) => settled.reduce((sum, sample) => sum + of(sample), 0) / settled.length;
  return {
    running: mean(({ running }) => running),
    queued: mean(({ queued }) => queued),
    tokensPerSecond: mean(({ generated }) => generated),
  };
}
