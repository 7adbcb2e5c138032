import { describe, expect, it } from 'vitest';
import { identityDifferences, identityOf, launchDifferences, renderCanonical } from './identity.ts';
import { readRunFile } from './read-run-file.ts';

const BASE = {
  run: 'r',
  model: 'models/m.gguf',
  sampling: { temperature: 0.5, 'extra-body': { b: 1, a: { d: 1, c: 2 } } },
  partitions: [{ name: 'B1', from: 'b1.jsonl', budget: '20M', limit: 100 }],
};
// JSON is YAML: any object is a run file.
const identity = (file: object, path = '/p/run.yaml') => identityOf(readRunFile(JSON.stringify(file), path));
const differences = (now: object) => identityDifferences(identity(BASE), identity({ ...BASE, ...now }));
const partition = (now: object) => differences({ partitions: [{ ...BASE.partitions[0], ...now }] });

describe('identityDifferences', () => {
  it('is silent about what may change', () => {
    expect(differences({})).toEqual([]);
    expect(
      differences({ servers: [{ engine: 'embedded', port: 8000, flags: { threads: 2 } }], 'in-flight': 3, patience: '1h' }),
    ).toEqual([]);
    expect(differences({ sampling: { ...BASE.sampling, 'extra-body': { a: { c: 2, d: 1 }, b: 1 } } })).toEqual([]);
    expect(differences({ partitions: [...BASE.partitions, { name: 'B2', from: 'b2.jsonl' }] })).toEqual([]);
    expect(differences({ partitions: [{ name: 'B2', from: 'b2.jsonl' }] })).toEqual([]);
    expect(partition({ budget: '21M', limit: '1k' })).toEqual([]);
    expect(partition({ budget: undefined, limit: undefined })).toEqual([]);
  });

  it('names what would change the data', () => {
    expect(differences({ model: 'default' })).toEqual([{ what: 'model', before: 'models/m.gguf', now: 'default' }]);
    expect(differences({ sampling: { ...BASE.sampling, temperature: 0 } })).toEqual([
      { what: 'sampling.temperature', before: '0.5', now: '0' },
    ]);
    expect(differences({ sampling: { ...BASE.sampling, thinking: false } })).toEqual([
      { what: 'sampling.chat-template-kwargs', before: '{}', now: '{"enable_thinking":false}' },
    ]);
    expect(differences({ sampling: { ...BASE.sampling, stop: ['END'] } })).toEqual([
      { what: 'sampling.stop', before: '[]', now: '["END"]' },
    ]);
    expect(partition({ sampling: { temperature: 0.1 } })).toEqual([
      { what: 'partitions.B1.sampling', before: 'as the run', now: '{"temperature":0.1}' },
    ]);
    expect(partition({ sampling: { temperature: 0.5 } })).toEqual([]);
    const mixture = [{ temperature: 0, share: 0.3 }];
    expect(partition({ sampling: { 'temperature-mixture': mixture } }).map(({ now }) => now)).toEqual([
      '{"temperatureMixture":[{"share":0.3,"temperature":0}]}',
    ]);
    expect(partition({ from: 'c.jsonl' })).toEqual([{ what: 'partitions.B1.from', before: 'b1.jsonl', now: 'c.jsonl' }]);
  });

  it('lets budget and limit be raised only', () => {
    expect(partition({ budget: '1M', limit: 99 })).toEqual([
      { what: 'partitions.B1.budget (may be raised, never lowered)', before: '20,000,000 tokens', now: '1,000,000 tokens' },
      { what: 'partitions.B1.limit (may be raised, never lowered)', before: '100 prompts', now: '99 prompts' },
    ]);
    const unlimited = identity({ ...BASE, partitions: [{ name: 'B1', from: 'b1.jsonl' }] });
    expect(identityDifferences(unlimited, identity(BASE)).map(({ before }) => before)).toEqual(['no budget', 'all prompts']);
  });

  it('is not confused by names that look like fields', () => {
    const named = (names: string[]) =>
      identity({ ...BASE, partitions: names.map((name) => ({ name, from: `${name}.jsonl`, budget: 5 })) });
    expect(identityDifferences(named(['a', 'a.budget']), named(['a.budget.from']))).toEqual([]);
  });

  it('takes a project that was moved as a whole for the same', () => {
    expect(identityDifferences(identity(BASE), identity(BASE, '/elsewhere/run.yaml'))).toEqual([]);
    const outside = { ...BASE, model: '/models/m.gguf' };
    expect(identityDifferences(identity(outside), identity(outside, '/elsewhere/run.yaml'))).toEqual([]);
  });
});

it('compares of two launches only what both have said', () => {
  const before = { model: 'm', revision: '', weights: 'q8_0', kvCacheDtype: 'bf16', templateHash: 'abc' };
  expect(launchDifferences(before, { ...before, kvCacheDtype: 'torch.bfloat16', weights: 'Q8_0', revision: 'r1' })).toEqual([]);
  expect(launchDifferences(before, { ...before, kvCacheDtype: 'unknown', templateHash: '' })).toEqual([]);
  expect(launchDifferences(before, { ...before, kvCacheDtype: 'fp8_e4m3', templateHash: 'abd' })).toEqual([
    { what: 'type of the KV cache', before: 'bf16', now: 'fp8_e4m3' },
    { what: 'chat template (its hash)', before: 'abc', now: 'abd' },
  ]);
});

it('writes equal values as equal text', () => {
  expect(renderCanonical({ b: [{ z: 1, a: null }], a: 'x' })).toBe('{"a":"x","b":[{"a":null,"z":1}]}');
});
