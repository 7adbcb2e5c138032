/** The answers of `aerie server …`. Pure. */
import type { ServerStartReport } from '../../app/server/start.ts';
import type { ServerStopReport } from '../../app/server/stop.ts';
import type { ServerVerifyReport, VerifiedServer } from '../../app/server/verify.ts';
import { formatCount } from '../../base/units.ts';
import { describeRule } from '../../spec/policy.ts';

export function renderServerStart({ servers }: ServerStartReport, typed: string): string {
  const lines = servers.flatMap(
    ({ name, pid, at, baseUrl, log, poolTokens, kvCacheDtype, contextTokens, maxRunningRequests }) => [
      `${name}  ready at ${at === '' ? baseUrl : at}, pid ${pid}`,
      `  holds      ${poolTokens > 0 ? `${formatCount(poolTokens)} tokens of ${kvCacheDtype}` : `KV cache of ${kvCacheDtype}`}`,
      `  takes      ${formatCount(contextTokens)} tokens a request, ${formatCount(maxRunningRequests)} requests at once`,
      `  log        ${log}`,
    ],
  );
  return [...lines, `It goes on until:  aerie server stop ${typed}`].join('\n');
}

export function renderServerStop({ servers, isClean }: ServerStopReport): string {
  const lines = servers.flatMap(({ name, launches, pid, says, isGone, isMemoryFree, gpus }) => {
    if (launches === 0) return [`${name}  was not launched yet: there is nothing to end`];
    if (pid === 0) return [`${name}  was not running; launch ${launches} has ended`, ...says.map((text) => `  ${text}`)];
    const ended = isGone ? `pid ${pid} has ended` : `pid ${pid} is still there`;
    const memory = gpus === 0 ? 'is not known: no card was seen here' : isMemoryFree ? 'is free' : 'is still held';
    return [`${name}  ${ended}, GPU memory ${memory}`, ...says.map((text) => `  ${text}`)];
  });
  return [...lines, ...(isClean ? [] : ['Something is left: the lines above say who holds it.'])].join('\n');
}

export function renderServerVerify({ servers }: ServerVerifyReport, typed: string): string {
  return servers.flatMap((server) => renderVerified(server, typed)).join('\n');
}

function renderVerified(server: VerifiedServer, typed: string): string[] {
  const { name, launch, launches, pid, at, baseUrl, log, verdict, verified, change, unverified } = server;
  if (verdict === undefined) {
    const why = launches === 0 ? 'was not launched yet' : `does not run; launch ${launches} has ended`;
    return [`${name}  ${why}:  aerie server start ${typed}`];
  }
  const { state, phase } = verdict;
  return [
    `${name}  ${state}${phase === '' ? '' : ` (${phase})`}, launch ${launch}, pid ${pid}, ${at === '' ? baseUrl : at}`,
    ...(verdict.cause === 'none' ? [] : renderCause(verdict)),
    ...(unverified === '' ? [] : [`  NOT KNOWN  what it really is: ${unverified}`]),
    ...(verified === undefined ? [] : renderFound(verified)),
    ...(change === undefined ? [] : change.lines.map((line) => `  change     ${line}`)),
    `  log        ${log}`,
  ];
}

function renderCause({ cause, title, evidence, remedy, signs }: NonNullable<VerifiedServer['verdict']>): string[] {
  return [
    `  cause      ${title} (${cause})`,
    ...evidence.slice(0, 3).map(({ line, text }) => `  line ${line}  ${text}`),
    ...signs.map((sign) => `  seen       ${sign}`),
    ...(remedy.text === '' ? [] : [`  remedy     ${remedy.text}`]),
  ];
}

function renderFound(verified: NonNullable<VerifiedServer['verified']>): string[] {
  const { poolTokens, kvType, freeAfterGraphsGiB, maxRunningRequests, contextTokens, predicted, warnings, policy } = verified;
  const left = freeAfterGraphsGiB === undefined ? '' : `, ${freeAfterGraphsGiB.toFixed(2)} GiB left after graph capture`;
  const lines = [
    `  holds      ${formatCount(poolTokens)} tokens${left}`,
    `  KV cache   ${kvType.type} (by ${kvType.how})`,
    `  takes      ${formatCount(contextTokens)} tokens a request, ${formatCount(maxRunningRequests)} requests at once`,
  ];
  if (predicted !== undefined) {
    const { low, high } = predicted.range;
    const where = predicted.insideRange ? 'inside' : 'OUTSIDE';
    lines.push(
      `  predicted  ${formatCount(predicted.poolTokens)} tokens; what came is ${where} ${formatCount(low)} to ${formatCount(high)}`,
    );
  }
  for (const { rule, kept, because } of policy)
    lines.push(
      `  policy     ${describeRule(rule)}: ${kept ? 'kept' : 'NOT KEPT'}, ${because}${kept ? '' : ` (${rule.because}; decided by ${rule.by})`}`,
    );
  return [...lines, ...warnings.map((warning) => `  warning    ${warning}`)];
}

/** Readings of a night at work stay in the log. */
export function serverVerifyData(report: ServerVerifyReport): unknown {
  const servers = report.servers.map(({ verdict, ...server }) => ({
    ...server,
    verdict: verdict === undefined ? null : { ...verdict, facts: { ...verdict.facts, samples: [] } },
  }));
  return { ...report, servers };
}
