/** Configs, flags and facts of any origin: the answer is a plan with finite numbers or an AerieError, and it comes at once. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { AerieError } from '../base/errors.ts';
import { type Fields, isFields } from './config-fields.ts';
import { GPUS } from './gpus.ts';
import { findKnownModel, KNOWN_MODELS } from './known-models.ts';
import { FLAG_TABLES, planLaunch } from './plan-launch.ts';
import type { Prediction } from './prediction.ts';
import { readFacts } from './read-facts.ts';
import { readModelConfig } from './read-model-config.ts';

const odd = fc.constantFrom<unknown>(
  0,
  1,
  -1,
  3,
  7,
  2 ** 40,
  2 ** 53,
  1e300,
  0.5,
  Number.NaN,
  null,
  '',
  'x',
  true,
  [],
  {},
  [[1]],
  ['full_attention'],
  { repeat: 1 },
);

/** Somewhere in a real config, one field is another, gone, or new. */
const spoiltConfig = fc
  .tuple(fc.constantFrom(...KNOWN_MODELS), fc.array(fc.tuple(fc.nat(), fc.boolean(), odd), { maxLength: 4 }))
  .map(([name, changes]) => {
    let config: Fields = findKnownModel(name)?.config ?? {};
    for (const [at, isGone, value] of changes) config = spoil(config, at, isGone, value);
    return config;
  });

function spoil(fields: Fields, at: number, isGone: boolean, value: unknown): Fields {
  const names = Object.keys(fields);
  const name = names[at % Math.max(1, names.length)];
  if (name === undefined) return { ...fields, num_hidden_layers: value };
  const inner = fields[name];
  if (isFields(inner) && at % 3 !== 0) return { ...fields, [name]: spoil(inner, Math.floor(at / 3), isGone, value) };
  const rest = Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name));
  return isGone ? rest : { ...rest, [name]: value };
}

const word = fc.constantFrom(
  '',
  '-1',
  '0',
  '1',
  '3',
  '8',
  '64',
  '0.5',
  '0.88',
  '1e9',
  '99999999999999',
  'auto',
  'bf16',
  'fp8',
  'EAGLE',
  '{"method":"mtp"}',
  '--',
  '=',
);
const flagsOf = (engine: 'sglang' | 'vllm') =>
  fc
    .array(fc.tuple(fc.constantFrom(...FLAG_TABLES[engine].rows), word), { maxLength: 8 })
    .map((pairs) => pairs.flatMap(([{ name }, value]) => [`--${name}`, value]));
const anyFacts = fc.dictionary(
  fc.constantFrom(
    'weightsGiBPerGpu',
    'freeBeforeLoadGiB',
    'freeAfterLoadGiB',
    'poolGiB',
    'graphsGiB',
    'freeAfterGraphsGiB',
    'poolTokens',
    'nonsense',
  ),
  fc.oneof(fc.double({ min: -10, max: 300 }), odd),
);

it.each(['sglang', 'vllm'] as const)('%s', (engine) => {
  fc.assert(
    fc.property(
      spoiltConfig,
      flagsOf(engine),
      anyFacts,
      fc.constantFrom(...GPUS),
      fc.constantFrom('', '0.4.6', '0.5.4', '0.5.8', '0.10.1', 'v9'),
      (config, flags, given, gpu, version) => {
        const said = planOrError(() => {
          const shape = readModelConfig({ name: 'a/b', config, source: 'test' });
          return planLaunch({
            engine,
            version,
            shape,
            gpu,
            flags,
            observations: [{ facts: readFacts(given).facts, source: 'test' }],
          }).prediction;
        });
        if (said instanceof AerieError) return;
        const {
          poolTokens,
          poolTokensRange,
          bytesPerToken,
          poolGiB,
          freeAfterGraphsGiB,
          maxRunningRequests,
          errorPercent,
          hostCache,
        } = said;
        const numbers = [
          poolTokens,
          poolTokensRange.low,
          poolTokensRange.high,
          bytesPerToken,
          poolGiB,
          freeAfterGraphsGiB,
          maxRunningRequests,
          errorPercent,
          hostCache.GiBTotal,
        ];
        expect(numbers.filter((one) => !Number.isFinite(one))).toEqual([]);
        expect(said.because).not.toBe('');
      },
    ),
    { numRuns: 1500 },
  );
});

function planOrError(make: () => Prediction): Prediction | AerieError {
  try {
    return make();
  } catch (error) {
    if (error instanceof AerieError) return error;
    throw error;
  }
}
