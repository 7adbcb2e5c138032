/** What has been measured, from `--facts`, from a log, and from launches that Aerie remembers → observations for `predict`. */
import { AerieError } from '../../base/errors.ts';
import type { EngineLaunch } from '../../capacity/engine-launch.ts';
import type { MeasuredLaunch } from '../../capacity/plan-launch.ts';
import { readFacts } from '../../capacity/read-facts.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import { plainFactsOf } from '../../diagnosis/measured-figures.ts';
import type { StepSample } from '../../twin/calibrate.ts';

export function observeFacts(text: string): MeasuredLaunch {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (thrown) {
    throw wrongFacts(thrown instanceof Error ? thrown.message : String(thrown));
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw wrongFacts('it is no JSON object');
  const { facts, problems } = readFacts(given as Record<string, unknown>);
  if (problems.length > 0) throw wrongFacts(problems.join('; '));
  return { facts, source: 'given with --facts' };
}

/** A log of another launch of the same model and GPUs is as good as one of this launch: its own flags say what it measured. */
export function observeLog(log: LogFacts, source: string): MeasuredLaunch {
  const flags = wordsOfLog(log);
  return { facts: readFacts(plainFactsOf(log)).facts, source, ...(flags.length === 0 ? {} : { flags }) };
}

/** The model as the launch named it, a hub name or a folder; '' where the log does not say. */
export function modelOf({ arguments: given }: LogFacts): string {
  return given['model_path'] ?? given['model'] ?? given['model_tag'] ?? '';
}

/** By the last part alone: `moonshotai/Kimi-K2.5` is often served from `/models/Kimi-K2.5`. */
export function isSameModel(one: string, other: string): boolean {
  const tail = (name: string) =>
    name
      .split('/')
      .filter((part) => part !== '')
      .at(-1)
      ?.toLowerCase() ?? '';
  return tail(one) === tail(other);
}

/** `mem_fraction_static=0.88` of SGLang's list of flags, `'tensor_parallel_size': 8` of vLLM's. */
export function wordsOfLog({ arguments: given, kvCacheDtype }: LogFacts): string[] {
  const words = Object.entries(given).flatMap(([name, value]) => {
    if (value === '' || /^(None|False)$/.test(value)) return [];
    const flag = `--${name.replaceAll('_', '-')}`;
    return value === 'True' ? [flag] : [flag, value];
  });
  // The list of flags may still say auto where the line of the cache says what it became.
  const type = kvCacheDtype === undefined ? '' : nameOfType(kvCacheDtype);
  return words.length === 0 || type === '' ? words : [...words, '--kv-cache-dtype', type];
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  'torch.bfloat16': 'bf16',
  'torch.float8_e4m3fn': 'fp8_e4m3',
  'torch.float8_e5m2': 'fp8_e5m2',
};

function nameOfType(dtype: string): string {
  return TYPE_NAMES[dtype] ?? '';
}

/** Readings to calibrate with: busy ones, thinned out. More points than this add nothing to four unknowns. */
const MOST_POINTS = 200;

export function pointsOf(log: LogFacts, launch: EngineLaunch, poolTokens: number): StepSample[] {
  const busy = log.samples.filter(({ running, generated }) => running > 0 && generated > 0);
  const every = Math.max(1, Math.ceil(busy.length / MOST_POINTS));
  return busy
    .filter((_, at) => at % every === 0)
    .map(({ running, generated, tokens, usage }) => ({
      running,
      tokensPerSecond: generated,
      contextTokens: tokens ?? usage * poolTokens,
      ...(launch.graphBatches.length === 0 ? { isEager: true } : {}),
    }));
}

export function parsePoints(text: string): StepSample[] {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (thrown) {
    throw wrongPoints(thrown instanceof Error ? thrown.message : String(thrown));
  }
  if (!Array.isArray(given) || given.length === 0) throw wrongPoints('it is no list of points');
  return given.map((point: unknown, at): StepSample => {
    const { running, tokensPerSecond, contextTokens } = (point ?? {}) as Record<string, unknown>;
    if (!isPositive(running) || !isPositive(tokensPerSecond) || !isPositive(contextTokens))
      throw wrongPoints(`point ${at + 1} lacks running, tokensPerSecond or contextTokens, numbers above 0`);
    return { running, tokensPerSecond, contextTokens };
  });
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}

function wrongFacts(because: string): AerieError {
  return new AerieError('usage.flag', 'What stands after --facts cannot be read.', {
    because,
    remedy: `Write it as --facts '{"weightsGiBPerGpu":72.33,"freeBeforeLoadGiB":94.04}', or give the log: --log server.log`,
  });
}

function wrongPoints(because: string): AerieError {
  return new AerieError('usage.flag', 'What stands after --calibrate is neither a log nor a list of points.', {
    because,
    remedy: `Give a log with a server at work, or --calibrate '[{"running":43,"tokensPerSecond":740,"contextTokens":114000}]'`,
  });
}
