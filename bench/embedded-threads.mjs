/**
 * How many threads the embedded engine should use on this machine: prefill, decode alone and decode in eight sequences, by
 * thread count. Build first (`npm run build`), then `node bench/embedded-threads.mjs [rounds] [model.gguf]`. Prints a Markdown table.
 *
 * One engine per thread count, all kept running; each round measures them one after another, so that a change of the
 * machine's load meets all of them. Prints the median of the rounds and their range. Greedy, end tokens ignored, no prompt repeats
 * another, so nothing is reused.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const PROGRAMS = fileURLToPath(new URL('../dist/programs/', import.meta.url));
const PREFILL_TOKENS = 512;
const ALONE_TOKENS = 64;
const BATCH = 8;
const BATCH_TOKENS = 48;

const rounds = Number(process.argv[2] ?? 3);
const model = process.argv[3] ?? execFileSync(process.execPath, [join(PROGRAMS, 'fetch-model.js')], { encoding: 'utf8' }).trim();
const threadCounts = [...new Set([1, 2, 3, 4, 6, 8, 12, 16].filter((count) => count <= availableParallelism()))];

/** The port file appears when the program listens; /health answers 200 when the model is loaded. */
async function start(folder, threads) {
  const portFile = join(folder, `port-${threads}`);
  const flags = [
    '--model',
    model,
    '--port-file',
    portFile,
    '--sequences',
    String(BATCH),
    '--threads',
    String(threads),
    '--lifeline',
  ];
  const child = spawn(process.execPath, [join(PROGRAMS, 'embedded-engine.js'), ...flags], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the engine ended with ${child.exitCode}`);
    await delay(200);
    const url = `http://127.0.0.1:${readPort(portFile)}`;
    if ((await fetch(`${url}/health`).catch(() => undefined))?.status === 200) return { threads, url, child, figures: [] };
  }
}

function readPort(path) {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return 1;
  }
}

let salt = 1000;
/** Ids that no earlier prompt began with. */
function newPrompt(length) {
  salt += 7;
  return Array.from({ length }, (_, at) => 1000 + ((salt * 31 + at * 17) % 40_000));
}

async function generate({ url }, prompt, tokens) {
  const body = { input_ids: prompt, sampling_params: { max_new_tokens: tokens, temperature: 0, ignore_eos: true } };
  const reply = await (await fetch(`${url}/generate`, { method: 'POST', body: JSON.stringify(body) })).json();
  if (reply.output_ids?.length !== tokens || reply.meta_info.cached_tokens > 0) throw new Error(JSON.stringify(reply));
}

async function tokensPerSecond(tokens, action) {
  const startedAt = performance.now();
  await action();
  return tokens / ((performance.now() - startedAt) / 1000);
}

async function measure(engine) {
  const prefill = await tokensPerSecond(PREFILL_TOKENS, () => generate(engine, newPrompt(PREFILL_TOKENS), 1));
  const alone = await tokensPerSecond(ALONE_TOKENS, () => generate(engine, newPrompt(4), ALONE_TOKENS));
  const batch = await tokensPerSecond(BATCH * BATCH_TOKENS, () =>
    Promise.all(Array.from({ length: BATCH }, () => generate(engine, newPrompt(4), BATCH_TOKENS))),
  );
  engine.figures.push({ prefill, alone, batch, load: loadavg()[0] });
}

function cell(figures, name) {
  const sorted = figures.map((figure) => figure[name]).sort((a, b) => a - b);
  const [least, median, most] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  return `${median.toFixed(0)} (${least.toFixed(0)}–${most.toFixed(0)})`;
}

const folder = mkdtempSync(join(tmpdir(), 'aerie-bench-'));
const engines = [];
try {
  for (const threads of threadCounts) engines.push(await start(folder, threads));
  for (const engine of engines) await generate(engine, newPrompt(16), 8); // the first step maps the weights into memory
  for (let round = 0; round < rounds; round++) for (const engine of engines) await measure(engine);
  console.log(
    `${cpus()[0]?.model ?? 'unknown CPU'}, ${availableParallelism()} cores, Node ${process.version}, ${model.split('/').at(-1)}`,
  );
  console.log(
    `median of ${rounds} rounds (range), tokens/s; load average ${engines.flatMap(({ figures }) => figures.map(({ load }) => load.toFixed(1))).join(' ')}\n`,
  );
  console.log(
    `| threads | prefill, ${PREFILL_TOKENS} tokens | decode, 1 sequence | decode, ${BATCH} sequences |\n|---|---|---|---|`,
  );
  for (const { threads, figures } of engines) {
    console.log(`| ${threads} | ${cell(figures, 'prefill')} | ${cell(figures, 'alone')} | ${cell(figures, 'batch')} |`);
  }
} finally {
  for (const { child } of engines) child.kill();
  rmSync(folder, { recursive: true, force: true });
}
