/**
 * What the requests of a run ask for, in words: one line for all partitions that are asked alike. Servers fill fields that
 * a request leaves out from the model's generation_config.json, silently; Aerie sends every one of them, and says so. Pure.
 */
import { formatCount } from '../base/units.ts';
import type { AskSettings, RunSpec } from '../spec/run.ts';

export function describeSampling({ partitions }: Pick<RunSpec, 'partitions'>): string[] {
  const byWords = new Map<string, string[]>();
  for (const { name, ask, continuations } of partitions) {
    const more = continuations === 0 ? '' : `; an answer cut there is continued, up to ${formatCount(continuations)} times`;
    const words = `${describeAsk(ask)}${more}`;
    byWords.set(words, [...(byWords.get(words) ?? []), name]);
  }
  const lines = [...byWords].map(([words, names]) => (byWords.size === 1 ? words : `${names.join(', ')}: ${words}`));
  return [...lines, 'all of it is sent with every request: defaults of the server (generation_config.json) do not apply'];
}

function describeAsk({ sampling, temperatureMixture, templateKwargs, extraBody }: AskSettings): string {
  const { temperature, topP, topK, maxTokens, seed, stop } = sampling;
  const left = 1 - temperatureMixture.reduce((sum, { share }) => sum + share, 0);
  const shares = [...temperatureMixture, ...(left > 1e-9 ? [{ temperature, share: left }] : [])];
  const percent = (share: number) => `${Math.round(share * 1000) / 10} %`;
  const parts = [
    temperatureMixture.length === 0
      ? `temperature ${temperature}`
      : `temperature ${shares.map((part) => `${part.temperature} for ${percent(part.share)}`).join(', ')}`,
    `top-p ${topP === 1 ? 'off' : topP}`,
    `top-k ${topK === 0 ? 'off' : topK}`,
    'min-p and repetition penalty off',
    `at most ${formatCount(maxTokens)} tokens`,
    `seed ${seed}`,
    ...(stop.length > 0 ? [`stop ${JSON.stringify(stop)}`] : []),
    ...(Object.keys(templateKwargs).length > 0 ? [`template ${JSON.stringify(templateKwargs)}`] : []),
    ...(Object.keys(extraBody).length > 0 ? [`and, laid over these, ${JSON.stringify(extraBody)}`] : []),
  ];
  return `asked with ${parts.join(', ')}`;
}
