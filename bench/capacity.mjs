/**
 * Predicted and printed KV pools, line by line: `npm run bench:capacity -- [FILE]`, by default ../shared/corpus/capacity.jsonl. Build first.
 * Prints Markdown. Each line of grade A or B is planned twice: from its facts (what a log prints before the pool), and from model, GPU and flags alone.
 * `inside` says whether the printed pool lies in the interval that rounding of the facts (or the width of the guesses) leaves.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { planLaunch } from '../dist/capacity/plan-launch.js';
import { explain } from './capacity/explain.mjs';
import { readRow } from './capacity/read-row.mjs';
import { median } from './statistics.mjs';

const [given] = process.argv.slice(2).filter((word) => !word.startsWith('-'));
const file = given ?? fileURLToPath(new URL('../../shared/corpus/capacity.jsonl', import.meta.url));
if (!existsSync(file)) {
  console.error(`${file} is not there; give the path of a capacity.jsonl`);
  process.exit(2);
}
const rows = readFileSync(file, 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line));
/** Versions to try where a line has neither version nor fraction: one for each rule of the automatic fraction. */
const ERAS = ['0.4.6', '0.4.10', '0.5.9', '0.5.12', '0.5.18'];

const results = rows.filter(({ grade }) => grade === 'A' || grade === 'B').map(judge);
printTable(results);
printBytes(rows);
printSummary(results);

function judge(row) {
  const known = readRow(row);
  const printed = row.max_total_num_tokens;
  if (known.shape === undefined || known.gpu === undefined) return { row, printed, known, why: known.why.join('; ') };
  const hasFacts = Object.keys(known.facts).length > 0;
  const isFractionOpen = row.engine === 'sglang' && !known.flags.includes('--mem-fraction-static') && known.version === '';
  const versions = isFractionOpen ? ERAS : [known.version];
  const plans = versions.map((version) => ({
    version,
    facts: hasFacts ? plan(known, version, known.facts) : undefined,
    bare: plan(known, version, undefined),
  }));
  const miss = ({ facts, bare }) => Math.abs((facts ?? bare).poolTokens / printed - 1);
  const best = plans.reduce((a, b) => (miss(b) < miss(a) ? b : a));
  return { row, printed, known, ...best, isVersionFitted: isFractionOpen };
}

function plan({ shape, gpu, flags }, version, facts) {
  const observations = facts === undefined ? [] : [{ facts, source: 'the line' }];
  const { prediction, launch } = planLaunch({ engine: launchEngine(flags), version, shape, gpu, flags, observations });
  return { ...prediction, launch };
}

function launchEngine(flags) {
  return flags.some((word) => /^--(tensor-parallel-size|gpu-memory-utilization|max-model-len)$/.test(word)) ? 'vllm' : 'sglang';
}

function printTable(list) {
  console.log('| line | grade | printed | from facts | miss | inside | from config | miss | inside | version |');
  console.log('|---|---|---:|---:|---:|---|---:|---:|---|---|');
  for (const { row, printed, facts, bare, version, isVersionFitted, why } of list) {
    const cell = (one) =>
      one === undefined ? ['—', '—', '—'] : [count(one.poolTokens), percent(one.poolTokens / printed - 1), inside(one, printed)];
    const shown = version === undefined ? '' : isVersionFitted ? `${version} fits best` : version || 'newest';
    const [a, b] = why === undefined ? [cell(facts), cell(bare)] : [cell(undefined), cell(undefined)];
    console.log(`| ${row.id} | ${row.grade} | ${count(printed)} | ${a.join(' | ')} | ${b.join(' | ')} | ${shown} |`);
  }
  console.log('\nLines that miss by more than 5 percent, or that cannot be planned:\n');
  for (const result of list) {
    const said = explain(result);
    if (said !== '') console.log(`- ${result.row.id}: ${said}`);
  }
}

/** Pool and tokens of a line together tell the bytes of one token, whatever the memory was. */
function printBytes(list) {
  console.log('\nBytes of one token, from lines that print the pool in GiB as well:\n');
  console.log('| line | printed | predicted | inside rounding |');
  console.log('|---|---:|---:|---|');
  let right = 0;
  let all = 0;
  for (const row of list) {
    const size = row.log_facts?.kv_size_gb;
    if (!size) continue;
    const known = readRow(row);
    if (known.shape === undefined || known.shape.caches.length === 0) continue;
    // What vLLM prints for hybrid models is requests times length, no number of stored tokens.
    if (row.engine === 'vllm' && known.shape.caches.some(({ kind }) => kind === 'state')) continue;
    const gpu = known.gpu ?? {
      name: 'any',
      memoryMiB: 81_920,
      bandwidthGBps: 0,
      bf16Tflops: 0,
      interconnect: { kind: 'pcie', GBps: 0 },
      computeCapability: 9,
      sources: [],
    };
    const { bytesPerToken } = plan({ ...known, gpu }, known.version, undefined);
    const [low, high] = [size - 0.01, size + 0.01].map((GiB) => (GiB * 2 ** 30) / row.max_total_num_tokens);
    const isInside = bytesPerToken >= low && bytesPerToken <= high;
    all += 1;
    right += isInside ? 1 : 0;
    console.log(
      `| ${row.id} | ${low.toFixed(0)}–${high.toFixed(0)} | ${bytesPerToken.toFixed(0)} | ${isInside ? 'yes' : 'no'} |`,
    );
  }
  console.log(`\n${right} of ${all} inside.`);
}

function printSummary(list) {
  const missOf = (name, keep = () => true) =>
    list
      .filter((one) => one[name] !== undefined && !one.why && keep(one))
      .map((one) => Math.abs(one[name].poolTokens / one.printed - 1) * 100);
  const say = (name, misses) =>
    misses.length > 0 &&
    console.log(
      `- ${name}: ${misses.length} lines, median ${median(misses).toFixed(2)} %, largest ${Math.max(...misses).toFixed(1)} %`,
    );
  console.log('\nMisses:\n');
  say('from facts', missOf('facts'));
  say('from the config alone', missOf('bare'));
  const isGiven = ({ row }) =>
    (row.mem_fraction_static ?? row.gpu_memory_utilization) != null && row.tp != null && (row.gpu ?? row.gpu_mem_gb) != null;
  say('from the config alone, where memory, fraction and tp are given', missOf('bare', isGiven));
  for (const engine of ['sglang', 'vllm']) say(`${engine}, best of both`, bestOf(list, engine));
  printLeaveOneOut(list);
}

function bestOf(list, engine) {
  return list
    .filter((one) => one.row.engine === engine && !one.why)
    .map((one) => Math.abs((one.facts ?? one.bare).poolTokens / one.printed - 1) * 100);
}

/**
 * The two guesses that facts replace, against the facts: weights, and free memory before them. For each model, the guess is corrected by the mean miss
 * of all other models, so that no model helps to predict itself.
 */
function printLeaveOneOut(list) {
  const samples = list.flatMap(({ row, known, bare, facts }) => {
    if (facts === undefined || bare === undefined || row.engine !== 'sglang') return [];
    const { weightsGiBPerGpu: weights, freeBeforeLoadGiB: before } = known.facts;
    return [
      {
        model: known.shape.name,
        weights: weights && weights.value - bare.weightsGiBPerGpu,
        before: before && before.value - bare.freeBeforeLoadGiB,
        of: bare,
      },
    ];
  });
  console.log('\nLeave one model out (GiB per GPU):\n');
  for (const name of ['weights', 'before']) {
    const known = samples.filter((one) => one[name] !== undefined);
    const models = [...new Set(known.map(({ model }) => model))];
    const errors = models.map((model) => {
      const others = known.filter((one) => one.model !== model).map((one) => one[name]);
      const mean = others.length === 0 ? 0 : others.reduce((a, b) => a + b, 0) / others.length;
      const own = known.filter((one) => one.model === model).map((one) => Math.abs(one[name] - mean));
      return {
        model,
        raw: Math.max(...known.filter((one) => one.model === model).map((one) => Math.abs(one[name]))),
        error: Math.max(...own),
      };
    });
    const title = name === 'weights' ? 'weights' : 'free before the weights';
    for (const { model, raw, error } of errors)
      console.log(`- ${title}, ${model}: ${raw.toFixed(2)} as guessed, ${error.toFixed(2)} corrected by the other models`);
  }
}

function inside(one, printed) {
  return printed >= one.poolTokensRange.low && printed <= one.poolTokensRange.high ? 'yes' : 'no';
}

function count(value) {
  return Math.round(value).toLocaleString('en-US');
}

function percent(share) {
  return `${share >= 0 ? '+' : ''}${(share * 100).toFixed(2)} %`;
}
