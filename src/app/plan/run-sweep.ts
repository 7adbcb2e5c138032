/** Every launch of a sweep, calculated and, where a workload is given, played; and the picture of it. Pure. */
import { type Candidate, evaluate, isForbidden, type PlanBasis } from './candidate.ts';
import { type PlayedWork, playWork } from './play-work.ts';
import { type PlotSeries, type PointState, renderPlotSvg } from './plot-svg.ts';
import { pointsOf, type Sweep, type SweepPoint } from './sweep.ts';
import type { PlannedWork } from './workload.ts';

export interface SweepRow {
  readonly point: SweepPoint;
  readonly candidate: Candidate;
  readonly played: PlayedWork | undefined;
}

/** Requests played for each of many launches: enough for the settled pace within some per cent, few enough for a hundred points. */
export const PLAYED_EACH = 3000;

export function runSweep(
  basis: PlanBasis,
  words: readonly string[],
  sweeps: readonly Sweep[],
  work: PlannedWork | undefined,
): SweepRow[] {
  if (sweeps.length === 0) return [];
  return pointsOf(sweeps).map((point) => {
    const candidate = evaluate(basis, [...words, ...Object.entries(point).flatMap(([flag, value]) => [`--${flag}`, value])]);
    return { point, candidate, played: work === undefined ? undefined : playWork(basis, candidate, work, PLAYED_EACH) };
  });
}

/** Undefined where no sweep runs over numbers: there is nothing to put on an axis. */
export function renderSweepPlot(title: string, sweeps: readonly Sweep[], rows: readonly SweepRow[]): string | undefined {
  const axis = sweeps.find(({ isNumeric }) => isNumeric);
  if (axis === undefined) return undefined;
  const lines = new Map<string, SweepRow[]>();
  for (const row of rows) {
    const name = nameOf(row.point, axis.flag);
    lines.set(name, [...(lines.get(name) ?? []), row]);
  }
  const series = [...lines].map(([name, own]): PlotSeries => {
    const forbidden = own.find(({ candidate }) => isForbidden(candidate))?.candidate.policy.find(({ kept }) => !kept);
    const points = own.map(({ point, candidate }) => ({
      x: Number(point[axis.flag]),
      y: candidate.prediction.verdict === 'refuses-to-start' ? 0 : candidate.prediction.serverTokens,
      state: STATES[candidate.prediction.verdict],
    }));
    return { name: name === '' ? 'this launch' : name, forbiddenBy: forbidden?.rule.because ?? '', points };
  });
  return renderPlotSvg({ title, xName: axis.flag, yName: 'tokens that the KV pool holds', series });
}

const STATES: Readonly<Record<Candidate['prediction']['verdict'], PointState>> = {
  fits: 'fits',
  'too-small': 'fits',
  'dies-under-load': 'risky',
  'refuses-to-start': 'fails',
};

function nameOf(point: SweepPoint, axis: string): string {
  return Object.entries(point)
    .filter(([flag]) => flag !== axis)
    .map(([flag, value]) => `${flag} ${value}`)
    .join(', ');
}
