import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { readRunFile } from '../spec/read-run-file.ts';
import { drawTemperature, settingsOf } from './prompt-settings.ts';

const runOf = (sampling: string, partitions = '[{ name: A, from: a.jsonl }]') =>
  readRunFile(`run: r\nmodel: default\nsampling: ${sampling}\npartitions: ${partitions}\n`, '/p/run.yaml');

test('a mixture gives each share of the prompts its temperature, and the rest the one of the run', () => {
  const run = runOf(
    '{ temperature: 0.7, temperature-mixture: [{ temperature: 0, share: 0.3 }, { temperature: 1, share: 0.5 }] }',
  );
  const drawn = Array.from({ length: 4_000 }, (_, at) => settingsOf(run, 'A', `prompt ${at}`).sampling.temperature);
  const share = (temperature: number) => drawn.filter((other) => other === temperature).length / drawn.length;
  // 4,000 draws: a share of 0.5 is within 0.04 of itself but once in two million.
  expect(Math.abs(share(0) - 0.3)).toBeLessThan(0.04);
  expect(Math.abs(share(1) - 0.5)).toBeLessThan(0.04);
  expect(Math.abs(share(0.7) - 0.2)).toBeLessThan(0.04);
});

test('the temperature of a prompt is the same in every run with this seed and mixture', () => {
  const mixture = '{ seed: 7, temperature-mixture: [{ temperature: 0, share: 0.5 }] }';
  fc.assert(
    fc.property(fc.string(), (id) => {
      const [a, b] = [runOf(mixture), runOf(mixture, '[{ name: B, from: b.jsonl }, { name: A, from: a.jsonl }]')];
      expect(settingsOf(a, 'A', id)).toEqual(settingsOf(b, 'A', id));
    }),
    { numRuns: runs(20) },
  );
  const ask = (seed: number) => runOf(`{ seed: ${seed}, temperature-mixture: [{ temperature: 0, share: 0.5 }] }`);
  const ids = Array.from({ length: 64 }, (_, at) => `prompt ${at}`);
  const drawn = (seed: number) => ids.map((id) => drawTemperature(ask(seed), id)).join();
  expect(drawn(7)).toBe(drawn(7));
  expect(drawn(8)).not.toBe(drawn(7));
});

test('shares that add up to 1 leave nothing to the temperature of the run', () => {
  const third = (temperature: number) => `{ temperature: ${temperature}, share: 0.3333333333 }`;
  const run = runOf(
    `{ temperature: 2, temperature-mixture: [${third(0)}, ${third(0.5)}, { temperature: 1, share: 0.3333333334 }] }`,
  );
  const drawn = new Set(Array.from({ length: 1_000 }, (_, at) => settingsOf(run, 'A', `prompt ${at}`).sampling.temperature));
  expect([...drawn].sort()).toEqual([0, 0.5, 1]);
});

test('a partition asks with its own settings laid over those of the run', () => {
  const run = runOf(
    '{ temperature: 0.7, top-k: 20, stop: ["END"], temperature-mixture: [{ temperature: 0, share: 1 }], extra-body: { a: 1 } }',
    '[{ name: A, from: a.jsonl }, { name: B, from: b.jsonl, sampling: { temperature: 0.2, max-tokens: 9, thinking: true, extra-body: {} } }]',
  );
  expect(settingsOf(run, 'A', 'x')).toMatchObject({ sampling: { temperature: 0, topK: 20, stop: ['END'] }, extraBody: { a: 1 } });
  expect(settingsOf(run, 'B', 'x')).toEqual({
    sampling: { temperature: 0.2, topP: 1, topK: 20, maxTokens: 9, seed: 0, stop: ['END'] },
    templateKwargs: { enable_thinking: true },
    extraBody: {},
  });
});
