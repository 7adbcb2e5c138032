/** A sweep as a table and as bars in the terminal. Pure. */

import type { SweepRow } from '../../app/plan/run-sweep.ts';
import type { PlanReport } from '../../app/plan.ts';
import { formatCount } from '../../base/units.ts';
import { renderTable } from './table.ts';

/** Width of the longest bar: a line fits in 100 columns beside its numbers. */
const BAR = 28;
const MARKS: Readonly<Record<string, string>> = {
  fits: 'fits',
  'too-small': 'too small',
  'dies-under-load': 'dies under load',
  'refuses-to-start': 'will not start',
};

export function renderPlanSweep({ sweeps, sweep, pricePerHour }: PlanReport): string[] {
  if (sweep.length === 0) return [];
  const hasPlayed = sweep.some(({ played }) => played !== undefined);
  const most = Math.max(1, ...sweep.map(({ candidate }) => candidate.prediction.serverTokens));
  const rows = sweep.map((row) => [
    ...sweeps.map(({ flag }) => row.point[flag] ?? ''),
    formatCount(row.candidate.prediction.serverTokens),
    row.candidate.prediction.freeAfterGraphsGiB.toFixed(2),
    ...speedOf(row, hasPlayed, pricePerHour),
    markOf(row),
    barOf(row, most),
  ]);
  const speed = hasPlayed
    ? ['running', 'queued', 'tok/s', 'hours', ...(pricePerHour > 0 ? ['price'] : [])]
    : ['running', 'tok/s'];
  const rules = new Set(
    sweep.flatMap(({ candidate }) =>
      candidate.policy.filter(({ kept }) => !kept).map(({ rule }) => `${rule.because} (${rule.by})`),
    ),
  );
  return [
    '',
    renderTable([...sweeps.map(({ flag }) => flag), 'tokens', 'GiB left', ...speed, '', ''], rows),
    ...[...rules].map((rule) => `forbidden: ${rule}`),
  ];
}

function speedOf({ played, candidate }: SweepRow, hasPlayed: boolean, price: number): string[] {
  if (!hasPlayed) {
    const { steady } = candidate;
    return steady === undefined
      ? ['', '']
      : [formatCount(Math.round(steady.running)), formatCount(Math.round(steady.tokensPerSecond))];
  }
  if (played === undefined) return ['', '', '', '', ...(price > 0 ? [''] : [])];
  const { running, queued, tokensPerSecond, hours } = played;
  return [running, queued, tokensPerSecond]
    .map((value) => formatCount(Math.round(value)))
    .concat(hours.toFixed(1), price > 0 ? [formatCount(Math.round(hours * price))] : []);
}

function markOf({ candidate }: SweepRow): string {
  if (candidate.policy.some(({ kept }) => !kept)) return 'forbidden';
  const { verdict, freeAfterGraphsGiB, prefillNeedGiB } = candidate.prediction;
  return verdict === 'fits' && freeAfterGraphsGiB < prefillNeedGiB.high ? 'fits, barely' : (MARKS[verdict] ?? '');
}

function barOf({ candidate }: SweepRow, most: number): string {
  const { verdict, serverTokens } = candidate.prediction;
  if (verdict === 'refuses-to-start') return '';
  const isHollow = verdict !== 'fits' || candidate.policy.some(({ kept }) => !kept);
  return (isHollow ? '░' : '█').repeat(Math.round((serverTokens / most) * BAR));
}
