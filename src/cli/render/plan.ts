/** The answer of `aerie plan`: the figures with where they are from, the verdict, and what to type next. Pure. */

import type { Alternative } from '../../app/plan/alternatives.ts';
import type { Candidate } from '../../app/plan/candidate.ts';
import type { PlayedWork } from '../../app/plan/play-work.ts';
import type { PlanReport, PlayedAlternative } from '../../app/plan.ts';
import { formatCount } from '../../base/units.ts';
import { renderPlanSweep } from './plan-sweep.ts';
import { renderTable } from './table.ts';

const VERDICTS: Readonly<Record<Candidate['prediction']['verdict'], string>> = {
  fits: 'fits',
  'refuses-to-start': 'will not start',
  'dies-under-load': 'starts, and runs out of memory under load',
  'too-small': 'starts, and is too small for what is asked',
};

const EFFECTS: Readonly<Record<Alternative['effect'], string>> = {
  none: 'same numbers',
  order: 'sums in another order',
  numerics: 'other numbers: ask',
  unknown: 'effect not known: ask',
};

export function renderPlan(report: PlanReport): string {
  return [
    ...renderHead(report),
    '',
    renderFigures(report.asked),
    '',
    ...renderVerdict(report),
    ...renderSpeed(report),
    ...renderAlternatives(report),
    ...renderPolicyPrice(report),
    ...renderPlanSweep(report),
    '',
    ...renderFooter(report),
  ].join('\n');
}

function renderHead({ model, engine, asked, gpu }: PlanReport): string[] {
  const { launch } = asked;
  const name = engine === 'sglang' ? 'SGLang' : 'vLLM';
  const gpus = launch.tp * launch.pp * (launch.isDpAttention ? 1 : launch.dp);
  return [`${model} on ${gpus} × ${gpu}, ${name} ${launch.version}${launch.isVersionAssumed ? ' (assumed)' : ''}`];
}

function renderFigures({ prediction, launch }: Candidate): string {
  const { poolTokensRange: range, prefillNeedGiB: need, hostCache } = prediction;
  const rows: (readonly [string, string, string])[] = [
    ['weights', `${gib(prediction.weightsGiBPerGpu)} GiB`, 'per GPU'],
    [
      'KV cache',
      launch.kvType.type,
      `${formatCount(Math.round(prediction.bytesPerToken))} bytes a token: ${prediction.bytesPerTokenBecause}`,
    ],
    [
      'KV pool',
      `${formatCount(prediction.poolTokens)} tokens`,
      `${gib(prediction.poolGiB)} GiB; between ${formatCount(range.low)} and ${formatCount(range.high)} (± ${prediction.errorPercent.toFixed(1)} %)`,
    ],
  ];
  if (prediction.serverTokens !== prediction.poolTokens)
    rows.push(['all pools', `${formatCount(prediction.serverTokens)} tokens`, 'of the whole server']);
  rows.push(
    ['running requests', formatCount(prediction.maxRunningRequests), 'at most, as the engine caps them'],
    [
      'free after graphs',
      `${gib(prediction.freeAfterGraphsGiB)} GiB`,
      need.high === 0
        ? 'activations are inside the budget'
        : `one prefill chunk of ${formatCount(launch.prefillChunkTokens)} tokens needs ${gib(need.low)} to ${gib(need.high)} GiB of it`,
    ],
  );
  if (hostCache.GiBTotal > 0)
    rows.push([
      'host memory',
      `${gib(hostCache.GiBTotal)} GiB`,
      `hierarchical cache: ${gib(hostCache.GiBPerRank)} GiB on each rank, ${formatCount(hostCache.tokens)} tokens; prefixes only, it runs no more requests`,
    ]);
  return renderRows(rows);
}

function renderRows(rows: readonly (readonly [string, string, string])[]): string {
  const widths = [0, 1].map((at) => Math.max(...rows.map((row) => (row[at] ?? '').length)));
  return rows
    .map(([name, value, note]) => `${name.padEnd(widths[0] ?? 0)}  ${value.padStart(widths[1] ?? 0)}  ${note}`)
    .join('\n');
}

function renderVerdict({ asked, nearest, nearMisses, assumed }: PlanReport): string[] {
  const { prediction, policy } = asked;
  const lines = [`verdict  ${VERDICTS[prediction.verdict]}: ${prediction.because}`];
  for (const { rule, kept, because } of policy)
    lines.push(kept ? `policy   kept: ${because}` : `policy   BROKEN: ${because}; ${rule.because} (decided by ${rule.by})`);
  for (const caution of [...prediction.cautions, ...nearMisses]) lines.push(`note     ${caution}`);
  for (const part of prediction.notModelled) lines.push(`note     not modelled: ${part}`);
  for (const sentence of assumed) lines.push(`assumed  ${sentence}`);
  if (nearest !== undefined) lines.push(`next     ${flagsOf(nearest)}: ${describe(nearest.candidate)}`);
  else if (prediction.verdict !== 'fits')
    lines.push('next     nothing near it works: fewer weights per GPU are needed (a higher tp, or another weight format)');
  return lines;
}

function renderSpeed({ asked, played, work, calibration, pricePerHour }: PlanReport): string[] {
  const { steady } = asked;
  if (steady === undefined) return [];
  const source =
    calibration === undefined
      ? 'step times from published fits, ± 25 %'
      : `step times from ${calibration.source}: ${formatCount(calibration.points)} points up to ${calibration.largestBatch} running, ${(calibration.meanError * 100).toFixed(1)} % off in the mean`;
  if (played === undefined) {
    const limit = {
      client: 'the client asks for no more',
      'max-running-requests': 'capped by max-running-requests',
      pool: 'all the pool holds',
    }[steady.limitedBy];
    return [
      `speed    about ${formatCount(Math.round(steady.tokensPerSecond))} tok/s with ${formatCount(Math.round(steady.running))} running (${limit}); ${source}`,
    ];
  }
  return [
    `speed    ${describePlayed(played, pricePerHour)}`,
    `         ${work.source}, ${formatCount(work.count)} requests; ${source}`,
  ];
}

function describePlayed(
  { running, queued, tokensPerSecond, hours, retractions, isClientLimited }: PlayedWork,
  price: number,
): string {
  const money = price > 0 ? `, ${formatCount(Math.round(hours * price))} at ${price} an hour` : '';
  const limited = isClientLimited ? '; limited by the client: the queue is empty, a higher in-flight would use the pool' : '';
  const again = retractions > 0 ? `, ${formatCount(retractions)} retractions` : '';
  return `${formatCount(Math.round(running))} running, ${formatCount(Math.round(queued))} queued, ${formatCount(Math.round(tokensPerSecond))} tok/s, ${hours.toFixed(1)} hours for the whole run${money}${again}${limited}`;
}

function renderAlternatives({ alternatives, pricePerHour, work }: PlanReport): string[] {
  if (alternatives.length === 0) return [];
  const rows = alternatives.map((one) => [
    flagsOf(one),
    formatCount(one.candidate.prediction.serverTokens),
    ...paceOf(one, work.isGiven, pricePerHour),
    gib(one.candidate.prediction.freeAfterGraphsGiB),
    one.candidate.policy.some(({ kept }) => !kept) ? 'forbidden' : EFFECTS[one.effect],
  ]);
  const pace = work.isGiven ? ['running', 'tok/s', 'hours', ...(pricePerHour > 0 ? ['price'] : [])] : ['tok/s'];
  return ['', 'what else reaches more, the fastest first', renderTable(['flags', 'tokens', ...pace, 'GiB left', ''], rows)];
}

/** From the twin where a workload was given, else from the settled state alone. */
function paceOf({ candidate, played }: PlayedAlternative, isGiven: boolean, price: number): string[] {
  const { steady } = candidate;
  if (!isGiven) return [steady === undefined ? '' : formatCount(Math.round(steady.tokensPerSecond))];
  if (played === undefined) return ['', '', '', ...(price > 0 ? [''] : [])];
  const { running, tokensPerSecond, hours } = played;
  const money = price > 0 ? [formatCount(Math.round(hours * price))] : [];
  return [formatCount(Math.round(running)), formatCount(Math.round(tokensPerSecond)), hours.toFixed(1), ...money];
}

function renderPolicyPrice({ policyPrice, work }: PlanReport): string[] {
  if (policyPrice === undefined) return [];
  const { bestAllowed, bestForbidden, because, by } = policyPrice;
  const rule = `the rule of ${by} (${because})`;
  const [kept, broken] = [bestAllowed.steady?.tokensPerSecond, bestForbidden.steady?.tokensPerSecond];
  if (kept === undefined || broken === undefined) {
    const tokens = bestForbidden.prediction.serverTokens - bestAllowed.prediction.serverTokens;
    return [
      '',
      tokens > 0
        ? `${rule} costs ${formatCount(tokens)} tokens of the pool`
        : `${rule} costs nothing: a launch that keeps it holds more`,
    ];
  }
  const pace = `${formatCount(Math.round(kept))} tok/s with it, ${formatCount(Math.round(broken))} without`;
  if (kept >= broken) return ['', `${rule} costs nothing, if the first line above holds: ${pace}`];
  const mean = work.requests.reduce((sum, { outputTokens }) => sum + outputTokens, 0) / work.requests.length;
  const hours = (mean * work.count * (1 / kept - 1 / broken)) / 3600;
  return ['', `${rule} costs ${hours.toFixed(1)} hours of ${formatCount(work.count)} requests: ${pace}`];
}

function renderFooter({ asked, calibration, plot }: PlanReport): string[] {
  const measured = asked.prediction.sources.some((source) => /^(pool )?measured/.test(source));
  const lines = asked.prediction.sources.map((source, at) => `${at === 0 ? 'from     ' : '         '}${source}`);
  if (plot !== '') lines.push(`plot     ${plot}`);
  if (!measured) lines.push('next     one launch makes it nearly exact: aerie plan … --log server.log');
  else if (calibration === undefined)
    lines.push('next     a log under load makes the speed exact too: aerie plan … --calibrate server.log');
  return lines;
}

export function flagsOf({ changes, because }: Alternative): string {
  return changes.length === 0 ? because : changes.join(' ');
}

function describe({ prediction, steady }: Candidate): string {
  const speed = steady === undefined ? '' : `, about ${formatCount(Math.round(steady.tokensPerSecond))} tok/s`;
  return `${formatCount(prediction.serverTokens)} tokens, ${gib(prediction.freeAfterGraphsGiB)} GiB left after graphs${speed}`;
}

function gib(value: number): string {
  return value.toFixed(2);
}

/** The document of `--json`. The figures of the launch stand at the top; the rest is beside them. */
export function planData(report: PlanReport): unknown {
  const { asked, alternatives, nearest, policyPrice, played, work, sweep, calibration } = report;
  return {
    ...candidateData(asked),
    ...{ engine: report.engine, version: asked.launch.version, model: report.model, gpu: report.gpu },
    launch: asked.launch,
    ...{ assumed: report.assumed, nearMisses: report.nearMisses, notModelled: asked.prediction.notModelled },
    nearest: nearest === undefined ? undefined : alternativeData(nearest),
    alternatives: alternatives.map((one) => ({ ...alternativeData(one), played: one.played })),
    policyPrice:
      policyPrice === undefined
        ? undefined
        : {
            because: policyPrice.because,
            by: policyPrice.by,
            allowed: candidateData(policyPrice.bestAllowed),
            forbidden: candidateData(policyPrice.bestForbidden),
          },
    workload: { source: work.source, requests: work.count, isGiven: work.isGiven },
    ...{ played, calibration },
    sweep: sweep.map(({ point, candidate, played: own }) => ({ point, ...candidateData(candidate), played: own })),
  };
}

function candidateData({ prediction, policy, steady }: Candidate) {
  const { sources, cautions, ...figures } = prediction;
  return {
    ...figures,
    ...{ sources, cautions },
    policy: policy.map(({ rule, kept, known, because }) => ({ rule, kept, known, because })),
    steady,
  };
}

function alternativeData({ changes, effect, because, candidate }: Alternative) {
  return { ...candidateData(candidate), flags: changes, effect, why: because };
}
