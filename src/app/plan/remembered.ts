/**
 * What launches have measured, kept for the next plan: one JSON line each in the cache. A launch speaks for another one of the
 * same model, engine version and kind of GPU; its own flags stand with it, so that any flag may differ.
 * Promises: a cache that cannot be read or written never stops a plan; a line that is not understood is passed over.
 */
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { MeasuredLaunch } from '../../capacity/plan-launch.ts';
import { readFacts } from '../../capacity/read-facts.ts';
import { cacheFolderOf } from '../../host/cache-folder.ts';
import type { Host } from '../../host/host.ts';

export interface RememberedKey {
  readonly model: string;
  readonly engine: string;
  readonly version: string;
  readonly gpu: string;
}

interface Kept extends RememberedKey {
  readonly at: string;
  readonly flags: readonly string[];
  /** Plain numbers, as a log prints them. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** The newest launches are enough: they fix two unknowns, and older ones may be of another driver. */
const MOST_READ = 4;
/** Some ten thousand launches; a larger file is not ours. */
const MOST_BYTES = 16 * 1024 * 1024;

export async function recallLaunches(key: RememberedKey, env: Host['env']): Promise<MeasuredLaunch[]> {
  const text = await readFile(pathIn(env), 'utf8').catch(() => '');
  if (text.length > MOST_BYTES) return [];
  const found = text.split('\n').flatMap((line) => {
    const kept = readLine(line);
    return kept !== undefined && isSame(kept, key) ? [kept] : [];
  });
  return found
    .slice(-MOST_READ)
    .reverse()
    .map(({ at, flags, facts }) => ({
      facts: readFacts(facts).facts,
      flags,
      source: `a launch of ${at.slice(0, 10)} that Aerie remembers`,
    }));
}

/** `facts` as plain numbers; a launch without flags of its own teaches nothing about another one and is not kept. */
export async function rememberLaunch(
  key: RememberedKey,
  flags: readonly string[],
  facts: Kept['facts'],
  host: Host,
): Promise<void> {
  if (flags.length === 0 || key.version === '') return;
  const kept: Kept = { ...key, at: new Date(host.clock.now()).toISOString(), flags, facts };
  const path = pathIn(host.env);
  const line = JSON.stringify(kept);
  const known = await readFile(path, 'utf8').catch(() => '');
  const isKnown = known.split('\n').some((one) => sameMeasurement(readLine(one), kept));
  if (isKnown) return;
  await mkdir(dirname(path), { recursive: true })
    .then(() => appendFile(path, `${line}\n`))
    .catch(() => undefined);
}

function pathIn(env: Host['env']): string {
  return join(cacheFolderOf(env), 'launches.jsonl');
}

function isSame(one: RememberedKey, other: RememberedKey): boolean {
  return one.model === other.model && one.engine === other.engine && one.version === other.version && one.gpu === other.gpu;
}

function sameMeasurement(one: Kept | undefined, other: Kept): boolean {
  if (one === undefined || !isSame(one, other)) return false;
  return JSON.stringify([one.flags, one.facts]) === JSON.stringify([other.flags, other.facts]);
}

function readLine(line: string): Kept | undefined {
  try {
    const { model, engine, version, gpu, at, flags, facts } = JSON.parse(line) as Record<string, unknown>;
    const isText = [model, engine, version, gpu, at].every((value) => typeof value === 'string');
    const isWhole = isText && Array.isArray(flags) && flags.every((flag) => typeof flag === 'string');
    return isWhole && typeof facts === 'object' && facts !== null
      ? ({ model, engine, version, gpu, at, flags, facts } as Kept)
      : undefined;
  } catch {
    return undefined;
  }
}
