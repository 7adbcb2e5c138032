/** Samples come back as they were written, and no text makes the reader throw. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readSamples, type Sample } from './prometheus.ts';

const escaped = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');

function render({ name, labels, value }: Sample, trailingComma: boolean): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`);
  const written = Number.isFinite(value) ? String(value) : `${value < 0 ? '-' : '+'}Inf`;
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}${trailingComma ? ',' : ''}}`} ${written}`;
}

const NAMES = ['vllm:cache_config_info', 'vllm:cache_config_info_total', 'other'] as const;
const anySample: fc.Arbitrary<Sample> = fc.record({
  name: fc.constantFrom(...NAMES),
  labels: fc.dictionary(
    fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/).filter((key) => key !== '__proto__'),
    fc.string().filter((text) => !text.includes('\r')),
    { maxKeys: 5, noNullPrototype: true },
  ),
  value: fc.oneof(
    fc.double({ noNaN: true }).map((value) => value + 0),
    fc.integer(),
  ),
});

test('what is written is read, by its whole name, whatever the labels hold', () => {
  fc.assert(
    fc.property(fc.array(anySample), fc.boolean(), fc.constantFrom(...NAMES), (samples, comma, wanted) => {
      const text = samples.map((sample) => `# HELP ${sample.name} {\n${render(sample, comma)}\n`).join('');
      const expected = samples.filter(({ name }) => name === wanted);
      expect(readSamples(text, wanted).map((sample) => ({ ...sample, labels: { ...sample.labels } }))).toEqual(expected);
    }),
  );
});

test('any text is read without an exception', () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('', '{', '{a="', '{a="b"', '{a="b"} '), (text, begin) => {
      for (const { name } of readSamples(`x${begin}${text}\n${text}`, 'x')) expect(name).toBe('x');
    }),
  );
});

test.each([
  ['x{a="b"} 1 1700000000', [{ name: 'x', labels: { a: 'b' }, value: 1 }]],
  ['x{ a = "b" , } 1e3', [{ name: 'x', labels: { a: 'b' }, value: 1000 }]],
  ['x NaN', [{ name: 'x', labels: {}, value: Number.NaN }]],
  ['x{a="b} 1', []],
  ['x{a="b"} one', []],
  ['x 1.2.3', []],
  ['x', []],
])('%s', (line, samples) => {
  expect(readSamples(line, 'x')).toEqual(samples);
});
