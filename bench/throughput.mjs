/**
 * Printed decode speeds beside what the twin says of them: `npm run bench:throughput [-- FILE]`, FILE being a throughput.jsonl
 * (default: ../shared/corpus/throughput.jsonl if it is there). A report, not a target; no build needed.
 *
 * A row is predicted from the other rows of the same server (each left out in turn) with a prior for what they cannot tell, or from
 * published coefficients of its model, GPU and engine. Where the row's facts allow neither, the table says what is missing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { median } from './statistics.mjs';

register('../scripts/typescript-hooks.mjs', import.meta.url);
const { calibrate, stepSeconds, stepTimeOf } = await import('../src/twin/calibrate.ts');
const { playLoad } = await import('../src/twin/play-load.ts');
const { SGLANG_RULES, VLLM_RULES } = await import('../src/twin/server.ts');

/** Model unknown: nothing is read per step but what a constant, the batch and the context explain. */
const PLAIN = { denseBytes: 0, expertBytes: 0, expertShare: 0, bytesPerSecond: 1, kvBytesPerToken: 1 };
/** Wide on purpose: one card to sixteen. kv is seconds per token of context: 25 to 58 ns on the story's machine. */
const PLAIN_PRIOR = {
  mean: { fixedSeconds: 0.012, weights: 0, kv: 3e-8, perRequestSeconds: 0.0002 },
  deviation: { fixedSeconds: 0.01, weights: 1, kv: 3e-8, perRequestSeconds: 0.0003 },
};
/** Mean of four published sets, seconds per prompt token. */
const PREFILL_SECONDS = 0.000035;

/** Published fits (15 points each; docs/twin.md), for rows that stand alone. Bytes: 58 × 256 experts × 3 × 7168 × 2048 in FP8, and the rest of 671e9. */
const PUBLISHED_SERVERS = [
  {
    matches: ({ engine, model, gpu, tp }) =>
      engine === 'sglang' && /deepseek-r1/i.test(model ?? '') && gpu === 'H200' && tp === 8,
    name: 'published fit of DeepSeek-R1 FP8, 8 × H200, SGLang',
    coefficients: { fixedSeconds: 0.0077, weights: 0.77, kv: 0, perRequestSeconds: 0.000179 },
    shape: {
      denseBytes: 17e9 / 8,
      expertBytes: 654e9 / 8,
      expertShare: 8 / 256,
      bytesPerSecond: 4.8e12,
      kvBytesPerToken: 70_272,
    },
    prefillSeconds: 0.000038,
  },
];

const file = process.argv[2] ?? fileURLToPath(new URL('../../shared/corpus/throughput.jsonl', import.meta.url));
if (!existsSync(file)) {
  console.error(`${file} is not there. Name a throughput.jsonl: npm run bench:throughput -- FILE`);
  process.exit(2);
}

const rows = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .flatMap((line, at) => {
    try {
      return [JSON.parse(line)];
    } catch {
      console.error(`line ${at + 1} is not JSON and is left out`);
      return [];
    }
  });

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value) && value > 0;
const serverOf = ({ source, engine, model, gpu, tp, dp, weights_dtype }) =>
  JSON.stringify([source, engine, model, gpu, tp, dp, weights_dtype]);
const acceptedBy = ({ spec_decoding }) => Number(/accept len ([\d.]+)/.exec(spec_decoding ?? '')?.[1] ?? 1);

/** What a row says, as a point of (running, tokens per second, context), or why it says nothing. */
function pointOf(row) {
  if (isNumber(row.running_req) && isNumber(row.gen_throughput_tok_s)) {
    if (/idle/i.test(row.notes ?? '')) return { missing: 'idle time is averaged in' };
    if (/on-device part|prefill/i.test(row.notes ?? ''))
      return { missing: 'its context or its prompt work cannot be told from the line' };
    if (!isNumber(row.tokens_in_pool))
      return { missing: 'the context of the running requests (only a share of an unknown pool)' };
    return {
      kind: 'line',
      sample: {
        ...{ running: row.running_req, tokensPerSecond: row.gen_throughput_tok_s, contextTokens: row.tokens_in_pool },
        ...{ tokensPerStep: acceptedBy(row), isEager: row.cuda_graph === false },
      },
    };
  }
  const { input_len: input, output_len: output, concurrency } = row;
  if (!isNumber(concurrency)) return { missing: 'how many requests ran at once' };
  if (!isNumber(input)) return { missing: 'the prompt length' };
  const total = row.total_tok_s / row.output_tok_s;
  if (isNumber(total) && isNumber(output) && Math.abs(total / ((input + output) / output) - 1) > 0.2)
    return {
      missing: `lengths that fit its own totals (total ÷ output is ${total.toFixed(0)}, the lengths give ${((input + output) / output).toFixed(0)})`,
    };
  const length = isNumber(output) ? output : 0;
  const contextTokens = concurrency * (input + length / 2);
  if (isNumber(row.tpot_ms) && concurrency === 1)
    return { kind: 'tpot', sample: { running: 1, tokensPerSecond: 1000 / row.tpot_ms, contextTokens } };
  const speed = row.output_tok_s ?? row.gen_throughput_tok_s;
  if (!isNumber(speed) || !isNumber(output)) return { missing: 'an output rate with its output length' };
  const prefillTokensPerSecond = (speed / output) * input;
  return { kind: 'bench', sample: { running: concurrency, tokensPerSecond: speed, contextTokens, prefillTokensPerSecond } };
}

const prefillOf = (seconds) => ({ perTokenSeconds: seconds, perTokenPairSeconds: 0, leastSeconds: 0 });

/** A closed loop of that many clients, long enough that start and end do not count. */
function playedSpeed(row, stepTime) {
  const { input_len: input, output_len: output, concurrency, engine } = row;
  const requests = Array.from({ length: 12 * concurrency }, (_, at) => ({
    // Lengths between 0.8 and 1 of what is written, as the usual benchmarks draw them; staggered, so that not all end at once.
    ...{
      id: String(at),
      promptTokens: input,
      outputTokens: Math.round(output * (0.8 + (0.2 * ((at * 7) % 11)) / 10)),
      maxNewTokens: output,
    },
    shared: [],
  }));
  const server = {
    ...{ poolTokens: 4 * concurrency * (input + output) + 20_000, maxRunningRequests: 1024, pageTokens: 1, prefixCache: false },
    ...{ hostTier: undefined, graphBatchSizes: [], stepTime, rules: engine === 'vllm' ? VLLM_RULES : SGLANG_RULES },
  };
  const result = playLoad(server, { requests, arrivals: { kind: 'closed', inFlight: concurrency } });
  return (result.steady ?? result.whole).tokensPerSecond;
}

function predict(row, point, others) {
  const published = PUBLISHED_SERVERS.find(({ matches }) => matches(row));
  if (published === undefined && others.length === 0)
    return { missing: 'a second point of this server, or published coefficients' };
  const stepTime =
    published === undefined
      ? calibrate({
          ...{ samples: others.map(({ sample }) => sample), shape: PLAIN, believed: PLAIN_PRIOR, graphBatchSizes: [] },
          prefill: prefillOf(PREFILL_SECONDS),
        }).stepTime
      : stepTimeOf(published.coefficients, published.shape, prefillOf(published.prefillSeconds));
  const how = published?.name ?? `${others.length} other point${others.length === 1 ? '' : 's'} of the server`;
  // Without graphs the constant is another: 30 to 50 ms were seen on one machine; here the sizes are unknown, so it is left alone.
  if (point.kind === 'bench') return { how, tokensPerSecond: playedSpeed(row, { ...stepTime, eagerSeconds: 0 }) };
  const { running, tokensPerStep = 1 } = point.sample;
  const seconds = stepSeconds({ ...stepTime, eagerSeconds: 0 }, [], point.sample);
  return { how, tokensPerSecond: (running * tokensPerStep) / seconds };
}

const points = rows.map((row) => ({ row, ...pointOf(row) }));
const errors = [];
console.log('| row | measured tok/s | predicted | error | from, or what is missing |\n|---|---|---|---|---|');
for (const point of points) {
  const { row, sample } = point;
  const others = points.filter((other) => other !== point && other.sample !== undefined && serverOf(other.row) === serverOf(row));
  const answer =
    sample === undefined
      ? point
      : predict(
          row,
          point,
          others.map((other) => ({ sample: { ...other.sample, isEager: false } })),
        );
  if (answer.tokensPerSecond === undefined) {
    console.log(`| ${row.id} | ${sample === undefined ? '' : sample.tokensPerSecond.toFixed(0)} | | | ${answer.missing} |`);
    continue;
  }
  const error = 100 * (answer.tokensPerSecond / sample.tokensPerSecond - 1);
  errors.push(Math.abs(error));
  console.log(
    `| ${row.id} | ${sample.tokensPerSecond.toFixed(0)} | ${answer.tokensPerSecond.toFixed(0)} | ${error >= 0 ? '+' : ''}${error.toFixed(0)} % | ${answer.how} |`,
  );
}
const told =
  errors.length === 0 ? '' : `; error: median ${median(errors).toFixed(0)} %, largest ${Math.max(...errors).toFixed(0)} %`;
console.log(`\n${errors.length} of ${rows.length} rows predicted${told}.`);
