/**
 * `--sweep mem-fraction-static=0.80..0.94`, `--sweep kv-cache-dtype=bf16,fp8_e4m3` → the launches to compare. Pure.
 * A range steps by the last digit that is written (0.80 → 0.01) or by what stands after a slash (0.80..0.94/0.02).
 */
import { AerieError } from '../../base/errors.ts';

export interface Sweep {
  /** Flag without dashes, as written. */
  readonly flag: string;
  readonly values: readonly string[];
  /** All values are numbers: it can be an axis. */
  readonly isNumeric: boolean;
}

/** A point of the sweep: a value for each flag. */
export type SweepPoint = Readonly<Record<string, string>>;

/** More than a screen can compare; a slip such as 1..1000000 is refused instead of calculated. */
const MOST_POINTS = 500;

export function parseSweeps(written: readonly string[]): Sweep[] {
  const sweeps = written.map(parseSweep);
  const points = sweeps.reduce((product, { values }) => product * values.length, 1);
  if (points > MOST_POINTS) throw wrong(written.join(' '), `makes ${points} launches, more than ${MOST_POINTS}`);
  return sweeps;
}

function parseSweep(written: string): Sweep {
  const [, flag, values] = /^(?:--)?([a-z][a-z0-9_-]*)=(.+)$/i.exec(written) ?? [];
  if (flag === undefined || values === undefined) throw wrong(written, 'is not FLAG=VALUES');
  const range = /^(-?[\d.]+)\.\.(-?[\d.]+)(?:\/([\d.]+))?$/.exec(values);
  const list = range === null ? values.split(',').map((value) => value.trim()) : readRange(written, range);
  if (list.some((value) => value === '')) throw wrong(written, 'has an empty value between its commas');
  return { flag, values: [...new Set(list)], isNumeric: list.every((value) => Number.isFinite(Number(value))) };
}

function readRange(written: string, [, first = '', last = '', step]: RegExpExecArray): string[] {
  const digits = Math.max(decimalsOf(first), decimalsOf(last), decimalsOf(step ?? ''));
  const by = step === undefined ? 10 ** -Math.max(decimalsOf(first), decimalsOf(last)) : Number(step);
  const count = Math.floor((Number(last) - Number(first)) / by + 1e-9) + 1; // 1e-9: 0.94 − 0.80 is a little less than 0.14
  if (!Number.isFinite(count) || count < 1) throw wrong(written, 'is a range that does not rise');
  if (count > MOST_POINTS)
    throw wrong(written, `makes ${count} launches, more than ${MOST_POINTS}; give a step: FLAG=FIRST..LAST/STEP`);
  return Array.from({ length: count }, (_, at) => (Number(first) + at * by).toFixed(digits));
}

function decimalsOf(number: string): number {
  return /\.(\d+)$/.exec(number)?.[1]?.length ?? 0;
}

/** Every combination, the last sweep changing fastest. */
export function pointsOf(sweeps: readonly Sweep[]): SweepPoint[] {
  return sweeps.reduce<SweepPoint[]>(
    (points, { flag, values }) => points.flatMap((point) => values.map((value) => ({ ...point, [flag]: value }))),
    [{}],
  );
}

function wrong(written: string, what: string): AerieError {
  return new AerieError('usage.flag', `--sweep ${written} ${what}.`, {
    remedy:
      'Write --sweep mem-fraction-static=0.80..0.94, --sweep max-running-requests=64..256/64 or --sweep kv-cache-dtype=bf16,fp8_e4m3. Nothing was started.',
  });
}
