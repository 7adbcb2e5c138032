/**
 * What moved between looks, and since when it stands. Pure. One measure for all signs: a value is followed from a mark, and only a
 * step away from the mark is movement, so that noise is none and slow growth adds up.
 */
import { formatBytes, formatCount } from '../../base/units.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import type { Look } from './look.ts';

export interface Sign {
  readonly name: string;
  readonly read: (look: Look) => number | undefined;
  /** Less than this is noise. */
  readonly step: number;
  readonly say: (value: number) => string;
}

export interface Movement {
  readonly name: string;
  /** When it last moved, by the looker's clock; undefined = never in these looks. */
  readonly movedAt: number | undefined;
  readonly value: number;
  readonly words: string;
}

const MIB = 2 ** 20;

/** A start moves if any of these does. A hung interpreter's memory flutters by some MiB; a shard is gigabytes. */
export const START_SIGNS: readonly Sign[] = [
  { name: 'the log', read: ({ logBytes }) => logBytes, step: 1, say: formatBytes },
  { name: 'resident memory', read: ({ process }) => process?.residentBytes, step: 16 * MIB, say: formatBytes },
  { name: 'bytes read', read: ({ process }) => process?.readBytes, step: MIB, say: formatBytes },
  { name: 'GPU memory', read: ({ process }) => process?.gpuUsedMiB, step: 16, say: (value) => `${formatCount(value)} MiB` },
];

/** A server at work moves if any of these does: what it computes, never what it answers to a probe. */
export const WORK_SIGNS: readonly Sign[] = [
  { name: 'generated tokens', read: ({ counters }) => counters?.generatedTokens, step: 1, say: formatCount },
  { name: 'prompt tokens', read: ({ counters }) => counters?.promptTokens, step: 1, say: formatCount },
  { name: 'work in the log', read: ({ logProgress }) => logProgress, step: 1, say: (line) => `line ${formatCount(line)}` },
  { name: 'answers', read: ({ asked }) => asked.answered, step: 1, say: formatCount },
];

/** Signs that could be read, each with its last movement. Compilers at work are movement as long as they are there. */
export function movements(looks: readonly Look[], signs: readonly Sign[]): Movement[] {
  const followed = signs.map((sign) => follow(looks, sign));
  const compiling = looks.findLast(({ process }) => (process?.compilers ?? 0) > 0);
  const compilers = compiling?.process?.compilers ?? 0;
  const all = [
    ...followed,
    compiling && { name: 'compilers', movedAt: compiling.atMs, value: compilers, words: `${compilers} at work` },
  ];
  return all.filter((one) => one !== undefined);
}

function follow(looks: readonly Look[], { name, read, step, say }: Sign): Movement | undefined {
  let mark: number | undefined;
  let movedAt: number | undefined;
  for (const look of looks) {
    const value = read(look);
    if (value === undefined) continue;
    if (mark !== undefined && Math.abs(value - mark) < step) continue;
    if (mark !== undefined) movedAt = look.atMs;
    mark = value;
  }
  return mark === undefined ? undefined : { name, movedAt, value: mark, words: say(mark) };
}

/** The last movement of any; undefined where nothing moved. */
export function lastMoved(all: readonly Movement[]): Movement | undefined {
  return [...all].sort((a, b) => (b.movedAt ?? Number.NEGATIVE_INFINITY) - (a.movedAt ?? Number.NEGATIVE_INFINITY))[0];
}

/** Since when something has been so without a break, up to the last look; undefined where it is not so now. */
export function since(looks: readonly Look[], is: (look: Look) => boolean): number | undefined {
  const broken = looks.findLastIndex((look) => !is(look));
  return looks[broken + 1]?.atMs;
}

/** Counters as they were last read: a scheduler that hangs may take its metrics with it. */
export function lastCounters(looks: readonly Look[]): EngineCounters | undefined {
  return looks.findLast(({ counters }) => counters !== undefined)?.counters;
}
