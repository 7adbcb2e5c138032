/** The answer of `aerie rehearse`: every launch and how it ended, the one that lived, its pace, and what that means for the whole run. Pure. */
import type { RehearsalReport, RehearsedServer } from '../../app/rehearse.ts';
import { formatCount } from '../../base/units.ts';
import { countOf } from './count-of.ts';

export function renderRehearsal(report: RehearsalReport): string {
  const { prompts, records, setAside, stoppedBy } = report;
  const lines = report.servers.flatMap(renderServer);
  if (report.wentThrough) {
    const aside = setAside === 0 ? '' : `, ${formatCount(setAside)} set aside`;
    lines.push(
      `outcome  it goes through: ${countOf(prompts, 'prompt')}, ${countOf(records, 'record')}${aside}`,
      renderPace(report),
    );
  }
  if (stoppedBy !== undefined) {
    lines.push(`outcome  IT DOES NOT GO THROUGH: ${stoppedBy.message} (${stoppedBy.code})`);
    for (const line of [...stoppedBy.evidence, ...stoppedBy.remedy.split('\n')]) if (line !== '') lines.push(`         ${line}`);
  }
  for (const sentence of report.assumed) lines.push(`assumed  ${sentence}`);
  lines.push('note     figures of a lookalike, not of an engine; nothing was kept, and the run itself was not touched');
  return lines.join('\n');
}

function renderServer({ name, engine, version, gpus, gpu, launches, load }: RehearsedServer): string[] {
  const lines = [`${name}  ${engine === 'vllm' ? 'vLLM' : 'SGLang'} ${version} on ${gpus} × ${gpu}, as a lookalike`];
  for (const { n, flags, because, ended } of launches) {
    if (because !== '') lines.push(`         ${because}`);
    lines.push(`launch ${n} ${flags}`, `         ${ended === '' ? 'lives' : ended}`);
  }
  const last = launches.at(-1);
  if (last === undefined) lines.push('         was not launched');
  else if (last.ended === '' && last.poolTokens > 0) {
    const predicted = last.predictedTokens > 0 ? `, ${formatCount(last.predictedTokens)} were predicted` : '';
    const left = last.freeAfterGraphsGiB > 0 ? `, ${last.freeAfterGraphsGiB.toFixed(2)} GiB left` : '';
    lines.push(`pool     ${formatCount(last.poolTokens)} tokens, KV cache ${last.kvCacheDtype}${left}${predicted}`);
  }
  if (load !== undefined) {
    const [running, queued, pace] = [load.running, load.queued, load.tokensPerSecond].map((value) =>
      formatCount(Math.round(value)),
    );
    lines.push(`load     ${running} running, ${queued} queued, ${pace} tok/s when it was full`);
  }
  return [...lines, ''];
}

function renderPace({ tokensPerSecond, whole, hours, pricePerHour }: RehearsalReport): string {
  const pace = `${formatCount(Math.round(tokensPerSecond))} tok/s`;
  if (whole.prompts === undefined || whole.tokens === undefined || hours === undefined)
    return `pace     ${pace}; how much the whole run has to do is not known from here`;
  const least = whole.isAtLeast ? 'at least ' : '';
  const price = pricePerHour > 0 ? `, ${formatCount(Math.round(hours * pricePerHour))} at ${pricePerHour} an hour` : '';
  return `whole    ${least}${countOf(whole.prompts, 'prompt')} and ${formatCount(Math.round(whole.tokens))} tokens at ${pace}: ${hours.toFixed(1)} hours${price}`;
}
