/**
 * What driving an engine costs: Aerie's real command line, everything durable, beside a plain undici loop that parses and
 * drops, and beside the `openai` package. Build first, then `npm run bench:driver -- [--rounds 3] [--only quick,wide] [--drivers aerie,plain]`. Prints Markdown.
 *
 * The engine is `driver/mock-engine.mjs` in a process of its own, new for each run, with the same latencies in the same order. Rounds go
 * through all drivers, each round beginning with another one, so that a change of the machine's load meets all of them;
 * ratios are taken inside a round.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load, machine, median, withRange } from './statistics.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** `quick`: speculators' shape, ideal 64 / 0.25 s = 256 a second. `wide`: 2,048 answers of 4,000 tokens at once. */
const SHAPES = {
  quick: { prompts: 2_000, inFlight: 64, latencyMs: [150, 350], answerTokens: 64, promptTokens: 48 },
  // 10 s: some 200 answers a second, so that no driver but the slowest fills a core.
  wide: { prompts: 8_192, inFlight: 2_048, latencyMs: [8_000, 12_000], answerTokens: 4_000, promptTokens: 48 },
};
const DRIVERS = ['plain', 'aerie', 'openai'];

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: Object.keys(SHAPES).join() },
    drivers: { type: 'string', default: DRIVERS.join() },
    /** Node flags for the driver, e.g. --cpu-prof. */
    node: { type: 'string', default: '' },
  },
});
const rounds = Number(flags.rounds);
const drivers = flags.drivers.split(',');

async function startEngine(shape) {
  const settings = JSON.stringify({ ...shape, asked: shape.inFlight });
  const child = spawn(process.execPath, [here('driver/mock-engine.mjs'), settings], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [port] = await once(child.stdout, 'data');
  return { child, url: `http://127.0.0.1:${Number(port)}` };
}

function writeProject(folder, shape, url) {
  const rows = Array.from({ length: shape.prompts }, (_, at) =>
    JSON.stringify({
      prompt: `Question ${at}: what follows from the ${at % 97}th rule, and why does it hold for ${at * 31} cases?`,
    }),
  );
  writeFileSync(join(folder, 'prompts.jsonl'), `${rows.join('\n')}\n`);
  const run = {
    run: 'bench',
    model: 'mock',
    'in-flight': shape.inFlight,
    sampling: { 'max-tokens': shape.answerTokens + 1, seed: 7 },
    servers: [{ engine: 'vllm', attach: url }],
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
  };
  writeFileSync(join(folder, 'run.yaml'), JSON.stringify(run));
}

function commandOf(driver, folder, shape, url) {
  if (driver === 'aerie') return [here('../dist/main.js'), 'run', join(folder, 'run.yaml'), '--json'];
  const program = driver === 'plain' ? 'driver/plain-loop.mjs' : 'driver/openai-sdk.mjs';
  return [here(program), url, join(folder, 'prompts.jsonl'), String(shape.inFlight), String(shape.answerTokens + 1)];
}

async function runOnce(driver, shape) {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-bench-'));
  const engine = await startEngine(shape);
  try {
    writeProject(folder, shape, engine.url);
    const loadBefore = load();
    const measures = join(folder, 'measures.json');
    const nodeFlags = flags.node === '' ? [] : flags.node.split(' ');
    const args = [...nodeFlags, '--import', here('driver/measure.mjs'), ...commandOf(driver, folder, shape, engine.url)];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, BENCH_MEASURES: measures },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
    const [code] = await once(child, 'close');
    const seen = await (await fetch(`${engine.url}/_mock/stats`)).json();
    if (code !== 0 || seen.answered !== shape.prompts)
      throw new Error(`${driver} ended with ${code} after ${seen.answered} of ${shape.prompts} answers: ${said}`);
    return { driver, load: loadBefore, ...seen, ...JSON.parse(readFileSync(measures, 'utf8')) };
  } finally {
    engine.child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(name, shape) {
  const results = [];
  for (let round = 0; round < rounds; round++) {
    const order = [...drivers.slice(round % drivers.length), ...drivers.slice(0, round % drivers.length)];
    for (const driver of order) {
      const result = await runOnce(driver, shape);
      results.push({ round, ...result });
      process.stderr.write(`${name} round ${round + 1}: ${JSON.stringify(result)}\n`);
    }
  }
  return results;
}

const perSecond = (shape) => (result) => shape.prompts / result.seconds;
const COLUMNS = {
  quick: (shape) => [
    { title: 'conversations/s', of: perSecond(shape), digits: 1, compare: true },
    { title: 'driver CPU, µs a request', of: ({ cpuUs }) => cpuUs / shape.prompts, digits: 0, compare: true },
    { title: 'loop lag p99, ms', of: ({ lagP99Ms }) => lagP99Ms, digits: 1 },
    { title: "engine's CPU, s", of: ({ cpuS }) => cpuS, digits: 1 },
  ],
  wide: (shape) => [
    { title: 'in flight / asked', of: ({ meanInFlight }) => meanInFlight / shape.inFlight, digits: 3 },
    { title: 'answers/s', of: perSecond(shape), digits: 0, compare: true },
    { title: 'driver CPU, µs a request', of: ({ cpuUs }) => cpuUs / shape.prompts, digits: 0, compare: true },
    { title: 'peak memory, MiB', of: ({ peakMib }) => peakMib, digits: 0, compare: true },
    { title: 'loop lag p99, ms', of: ({ lagP99Ms }) => lagP99Ms, digits: 1 },
    { title: "engine's CPU, s", of: ({ cpuS }) => cpuS, digits: 1 },
  ],
};

/** To the plain loop of the same round. */
function ratios(results, driver, { of }) {
  return results
    .filter((result) => result.driver === driver)
    .map((result) => of(result) / of(results.find((other) => other.driver === 'plain' && other.round === result.round)));
}

function table(name, shape, results) {
  const columns = COLUMNS[name](shape);
  const lines = [`| driver | ${columns.map(({ title }) => title).join(' | ')} |`, `|---${'|---'.repeat(columns.length)}|`];
  for (const driver of drivers) {
    const own = results.filter((result) => result.driver === driver);
    const cells = columns.map((column) => {
      const figures = withRange(own.map(column.of), column.digits);
      const isCompared = column.compare && driver !== 'plain' && drivers.includes('plain');
      return isCompared ? `${figures}; **× ${median(ratios(results, driver, column)).toFixed(2)}**` : figures;
    });
    lines.push(`| ${driver} | ${cells.join(' | ')} |`);
  }
  return lines.join('\n');
}

for (const name of flags.only.split(',')) {
  const shape = SHAPES[name];
  const results = await measure(name, shape);
  console.log(`\n${name}: ${JSON.stringify(shape)}\n${machine(results.map((result) => result.load))}; ${rounds} rounds\n`);
  console.log(table(name, shape, results));
}
