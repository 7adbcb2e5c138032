/**
 * Memory of a run whose source is large: `aerie run`, the real command line, reads it to its end while no answer has come.
 * Build first, then `npm run bench:large-source -- [--gigabytes 5]`. Needs three times that on disk, in a temporary folder
 * that is deleted afterwards; Linux alone tells the peak of a process. Prints Markdown.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nodeHost } from '../dist/host/node-host.js';
import { openSqliteLedger } from '../dist/ledger/sqlite/open-ledger.js';
import { load, machine } from './statistics.mjs';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const { values: flags } = parseArgs({ options: { gigabytes: { type: 'string', default: '5' } } });
const folder = mkdtempSync(join(tmpdir(), 'aerie-bench-'));
const source = join(folder, 'prompts.jsonl');

/** Rows of 2 to 6 KB, as conversations have. */
function writeSource(bytes) {
  const file = openSync(source, 'w');
  for (let at = 0, written = 0; written < bytes; at++)
    written += writeSync(file, `{"prompt":"${at}: ${'all that is known of it '.repeat(80 + (at % 170))}"}\n`);
  closeSync(file);
}

/** Models are named, and nothing is ever answered. */
async function startSilentEngine() {
  const server = createServer((request, reply) => {
    if (request.method === 'GET') reply.setHeader('content-type', 'application/json').end(answerTo(request.url));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function answerTo(url) {
  if (url === '/v1/models') return JSON.stringify({ data: [{ id: 'mock', max_model_len: 32_768 }] });
  return url === '/version' ? '{"version":"0.11.0"}' : '';
}

const peakMib = (pid) => Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);

function enrolment() {
  try {
    const ledger = openSqliteLedger(join(folder, 'runs', 'bench', 'ledger.sqlite'), {
      clock: nodeHost().clock,
      readOnly: true,
    });
    try {
      return ledger.partitions()[0];
    } finally {
      ledger.close();
    }
  } catch {
    return undefined; // not there yet
  }
}

try {
  writeSource(Number(flags.gigabytes) * 1e9);
  const engine = await startSilentEngine();
  const run = {
    ...{ run: 'bench', model: 'mock', sampling: { 'max-tokens': 64 }, partitions: [{ name: 'B1', from: 'prompts.jsonl' }] },
    servers: [{ engine: 'vllm', attach: `http://127.0.0.1:${engine.address().port}` }],
  };
  writeFileSync(join(folder, 'run.yaml'), JSON.stringify(run));
  const [before, startedMs] = [load(), performance.now()];
  const worker = spawn(process.execPath, [MAIN, 'run', 'run.yaml'], { cwd: folder, stdio: 'ignore' });
  let partition;
  while (worker.exitCode === null && partition?.enrolment !== 'complete') {
    await new Promise((resolve) => setTimeout(resolve, 200));
    partition = enrolment();
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const peak = peakMib(worker.pid);
  worker.kill('SIGTERM');
  await once(worker, 'exit');
  engine.closeAllConnections();
  engine.close();
  const bytes = statSync(source).size;
  console.log(`${machine([before])}.\n`);
  console.log('| source | prompts | peak memory, MiB | seconds | MB/s |\n|---|---|---|---|---|');
  const cells = [`${(bytes / 1e9).toFixed(1)} GB`, partition.enrolled.toLocaleString('en'), peak];
  console.log(`| ${[...cells, Math.round(seconds), Math.round(bytes / 1e6 / seconds)].join(' | ')} |`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
