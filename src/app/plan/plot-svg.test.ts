import { describe, expect, it } from 'vitest';
import { type Plot, renderPlotSvg } from './plot-svg.ts';

const PLOT: Plot = {
  title: 'a < b',
  xName: 'mem-fraction-static',
  yName: 'tokens',
  series: [
    {
      name: 'bf16',
      forbiddenBy: '',
      points: [
        { x: 0.8, y: 0, state: 'fails' },
        { x: 0.88, y: 159_277, state: 'fits' },
        { x: 0.93, y: 231_000, state: 'risky' },
      ],
    },
    {
      name: 'fp8_e4m3',
      forbiddenBy: 'the owner says <no>',
      points: [
        { x: 0.8, y: 0, state: 'fails' },
        { x: 0.93, y: 462_000, state: 'fits' },
      ],
    },
  ],
};

describe('renderPlotSvg', () => {
  const svg = renderPlotSvg(PLOT);

  it('draws each point by what it is, and inside the picture', () => {
    expect(svg.match(/<circle/g)).toHaveLength(2 + 1); // and one in the legend
    expect(svg.match(/<polygon/g)).toHaveLength(1 + 1);
    expect(svg.match(/<path/g)).toHaveLength(2 + 1);
    for (const [, x, y] of svg.matchAll(/c[x]="([\d.]+)" cy="([\d.]+)"/g)) {
      expect(Number(x)).toBeLessThanOrEqual(860);
      expect(Number(y)).toBeGreaterThan(0);
    }
  });

  it('names the rule of a forbidden line, and lets no text out of its place', () => {
    expect(svg).toContain('fp8_e4m3 (forbidden: the owner says &lt;no&gt;)');
    expect(svg).not.toContain('<no>');
    expect(svg).toContain('<title>a &lt; b</title>');
  });

  it('draws a sweep of one point', () => {
    const one = renderPlotSvg({ ...PLOT, series: [{ name: 'x', forbiddenBy: '', points: [{ x: 8, y: 10, state: 'fits' }] }] });
    expect(one).not.toContain('NaN');
  });
});
