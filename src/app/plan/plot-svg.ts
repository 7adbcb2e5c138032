/**
 * A sweep as a picture: pool tokens over one flag, one line for each setting of the others. Pure: figures in, SVG out.
 * What a point is shows in its shape and not in its colour alone; what policy forbids is hollow, grey, and named below.
 */

export type PointState = 'fits' | 'risky' | 'fails';

export interface PlotPoint {
  readonly x: number;
  readonly y: number;
  readonly state: PointState;
}

export interface PlotSeries {
  readonly name: string;
  /** The rule that forbids the whole line, '' where none does. */
  readonly forbiddenBy: string;
  /** Ascending in x. */
  readonly points: readonly PlotPoint[];
}

export interface Plot {
  readonly title: string;
  readonly xName: string;
  readonly yName: string;
  readonly series: readonly PlotSeries[];
}

const WIDTH = 860;
const HEIGHT = 480;
const EDGE = { left: 84, right: 28, top: 56, bottom: 64 };
/** Told apart also by people who see few colours (Okabe and Ito). */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];
const GREY = '#8a8a8a';

interface Scale {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly xTicks: readonly number[];
  readonly yTicks: readonly number[];
}

export function renderPlotSvg(plot: Plot): string {
  const scale = scaleOf(plot);
  const legend = plot.series.map((series, at) => renderLegend(series, at));
  const height = HEIGHT + 22 * (plot.series.length + 1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="13" role="img">`,
    `<title>${escapeXml(plot.title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${EDGE.left}" y="28" font-size="16" font-weight="600" fill="#1a1a1a">${escapeXml(plot.title)}</text>`,
    ...renderAxes(plot, scale),
    ...plot.series.flatMap((series, at) => renderSeries(series, colourOf(series, at), scale)),
    ...legend,
    renderShapes(HEIGHT + 22 * plot.series.length + 6),
    '</svg>',
    '',
  ].join('\n');
}

function scaleOf({ series }: Plot): Scale {
  const points = series.flatMap(({ points: all }) => all);
  const xs = points.map(({ x }) => x);
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const span = high - low || 1;
  const yTicks = ticks(0, Math.max(1, ...points.map(({ y }) => y)));
  const top = yTicks.at(-1) ?? 1;
  return {
    x: (value) => round(EDGE.left + ((value - low) / span) * (WIDTH - EDGE.left - EDGE.right)),
    y: (value) => round(HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom)),
    xTicks: ticks(low, high).filter((tick) => tick >= low - 1e-9 && tick <= high + 1e-9),
    yTicks,
  };
}

/** Round steps (1, 2 or 5 times a power of ten), about six of them, the last at or above `high`. */
function ticks(low: number, high: number): number[] {
  const raw = (high - low || 1) / 6;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

function renderAxes(plot: Plot, { x, y, xTicks, yTicks }: Scale): string[] {
  const right = WIDTH - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  return [
    ...yTicks.flatMap((tick) => [
      `<line x1="${EDGE.left}" x2="${right}" y1="${y(tick)}" y2="${y(tick)}" stroke="#e4e4e4"/>`,
      `<text x="${EDGE.left - 8}" y="${y(tick) + 4}" text-anchor="end" fill="#555">${short(tick)}</text>`,
    ]),
    ...xTicks.flatMap((tick) => [
      `<line x1="${x(tick)}" x2="${x(tick)}" y1="${bottom}" y2="${bottom + 5}" stroke="#555"/>`,
      `<text x="${x(tick)}" y="${bottom + 20}" text-anchor="middle" fill="#555">${tick}</text>`,
    ]),
    `<text x="${(EDGE.left + right) / 2}" y="${bottom + 44}" text-anchor="middle" fill="#1a1a1a">${escapeXml(plot.xName)}</text>`,
    `<text transform="translate(20 ${(EDGE.top + bottom) / 2}) rotate(-90)" text-anchor="middle" fill="#1a1a1a">${escapeXml(plot.yName)}</text>`,
  ];
}

function renderSeries({ points, forbiddenBy }: PlotSeries, colour: string, { x, y }: Scale): string[] {
  const line = points.map((point) => `${x(point.x)},${y(point.y)}`).join(' ');
  const dashes = forbiddenBy === '' ? '' : ' stroke-dasharray="5 5"';
  return [
    `<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="1.5"${dashes}/>`,
    ...points.map((point) => renderPoint(x(point.x), y(point.y), point.state, { colour, isHollow: forbiddenBy !== '' })),
  ];
}

function renderPoint(
  x: number,
  y: number,
  state: PointState,
  { colour, isHollow }: { colour: string; isHollow: boolean },
): string {
  const fill = isHollow ? '#ffffff' : colour;
  if (state === 'fits') return `<circle cx="${x}" cy="${y}" r="4.5" fill="${fill}" stroke="${colour}" stroke-width="1.5"/>`;
  if (state === 'risky') {
    const corners = `${x},${y - 6} ${x + 5.5},${y + 4} ${x - 5.5},${y + 4}`;
    return `<polygon points="${corners}" fill="#ffffff" stroke="${colour}" stroke-width="1.5"/>`;
  }
  return `<path d="M${x - 4.5} ${y - 4.5}L${x + 4.5} ${y + 4.5}M${x - 4.5} ${y + 4.5}L${x + 4.5} ${y - 4.5}" stroke="${colour}" stroke-width="2"/>`;
}

function renderLegend(series: PlotSeries, at: number): string {
  const y = HEIGHT + 22 * at + 6;
  const colour = colourOf(series, at);
  const dashes = series.forbiddenBy === '' ? '' : ' stroke-dasharray="5 5"';
  const forbidden = series.forbiddenBy === '' ? '' : ` (forbidden: ${series.forbiddenBy})`;
  return [
    `<line x1="${EDGE.left}" x2="${EDGE.left + 28}" y1="${y}" y2="${y}" stroke="${colour}" stroke-width="2"${dashes}/>`,
    `<text x="${EDGE.left + 38}" y="${y + 4}" fill="#1a1a1a">${escapeXml(series.name + forbidden)}</text>`,
  ].join('');
}

function renderShapes(y: number): string {
  const shapes: readonly [PointState, string][] = [
    ['fits', 'fits'],
    ['risky', 'starts, and runs out of memory under load'],
    ['fails', 'does not start'],
  ];
  let x = EDGE.left + 6;
  return shapes
    .map(([state, words]) => {
      const drawn = `${renderPoint(x, y, state, { colour: '#1a1a1a', isHollow: false })}<text x="${x + 12}" y="${y + 4}" fill="#555">${words}</text>`;
      x += 40 + 7 * words.length; // 7: width of a letter at this size
      return drawn;
    })
    .join('');
}

function colourOf({ forbiddenBy }: PlotSeries, at: number): string {
  return forbiddenBy === '' ? (COLOURS[at % COLOURS.length] ?? GREY) : GREY;
}

/** 150000 → 150K */
function short(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toFixed(2))}M`;
  return value >= 1000 ? `${Number((value / 1000).toFixed(1))}K` : String(value);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
