import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AerieError } from '../../base/errors.ts';
import { parseSweeps, pointsOf } from './sweep.ts';

const valuesOf = (written: string) => parseSweeps([written])[0]?.values;

describe('parseSweeps', () => {
  it('steps a range by its last digit, or by the step that is given', () => {
    expect(valuesOf('mem-fraction-static=0.80..0.94')).toEqual([
      '0.80',
      '0.81',
      '0.82',
      '0.83',
      '0.84',
      '0.85',
      '0.86',
      '0.87',
      '0.88',
      '0.89',
      '0.90',
      '0.91',
      '0.92',
      '0.93',
      '0.94',
    ]);
    expect(valuesOf('--tp=2..8/2')).toEqual(['2', '4', '6', '8']);
    expect(valuesOf('f=0.8..0.9/0.05')).toEqual(['0.80', '0.85', '0.90']);
  });

  it('takes a list once each', () => {
    expect(parseSweeps(['kv-cache-dtype=bf16,fp8_e4m3,bf16'])).toEqual([
      { flag: 'kv-cache-dtype', values: ['bf16', 'fp8_e4m3'], isNumeric: false },
    ]);
  });

  it.each(['x', '=1', 'a=', 'a=1,,2', 'a=2..1', 'a=0..1000000', 'a=1..2/0'])('refuses %s with what to write', (written) => {
    expect(() => parseSweeps([written])).toThrow(AerieError);
  });

  it('makes every combination, each once', () => {
    const values = fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{1,4}$/), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(values, values, (a, b) => {
        const points = pointsOf(parseSweeps([`a=${a.join(',')}`, `b=${b.join(',')}`]));
        expect(new Set(points.map((point) => JSON.stringify(point))).size).toBe(a.length * b.length);
      }),
    );
  });
});
