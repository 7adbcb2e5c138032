/**
 * How fast `aerie diagnose` reads: the real command line over a generated log, from its start to its end, with its largest memory.
 * Build first, then `npm run bench:diagnose -- [--megabytes 500] [--rounds 3]`. Prints Markdown.
 *
 * Two logs: a server at work (access lines, prefill and decode lines, as an hour-old server writes them), and the worst that
 * can be for the reader: lines of which each holds a sign. They lie in a temporary folder that is deleted afterwards.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load, machine, withRange } from './statistics.mjs';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const START = readFileSync(new URL('../test/corpus/logs/023-sglang-ready-zero-avail-mem-jit.log', import.meta.url), 'utf8');
const LINES_AT_ONCE = 5_000;

const { values: flags } = parseArgs({
  options: { megabytes: { type: 'string', default: '500' }, rounds: { type: 'string', default: '3' } },
});
const megabytes = Number(flags.megabytes);
const rounds = Number(flags.rounds);
const folder = mkdtempSync(join(tmpdir(), 'aerie-bench-'));

/** A line of a server that answers some thirty requests a second. */
function workLine(at, time) {
  if (at % 10 === 0)
    return `[${time} TP0] Decode batch, #running-req: ${100 + (at % 40)}, #token: ${90_000 + (at % 9_999)}, token usage: 0.${50 + (at % 40)}, cuda graph: True, gen throughput (token/s): ${1300 + (at % 90)}.12, #queue-req: ${at % 3}, \n`;
  if (at % 10 === 5)
    return `[${time} TP0] Prefill batch, #new-seq: 1, #new-token: ${at % 4000}, #cached-token: 0, token usage: 0.50, #running-req: 120, #queue-req: 0, \n`;
  const [method, path] = at % 3 === 0 ? ['POST', '/generate'] : ['GET', '/metrics'];
  return `[${time}] INFO:     10.0.0.11:${30_000 + (at % 9_999)} - "${method} ${path} HTTP/1.1" 200 OK\n`;
}

/** Each line is a sign of some rule: nothing can be passed over unread at first. */
function signLine(at, time) {
  const signs = [
    'KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.3 -> 0.4',
    'NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct',
    'Ignore import error when loading sglang.srt.models.x: cannot open shared object file',
    'WARNING Connection reset by peer',
  ];
  return `[${time} TP0] ${signs[at % signs.length]}\n`;
}

function write(name, makeLine) {
  const path = join(folder, name);
  const file = openSync(path, 'w');
  let bytes = writeSync(file, START);
  for (let at = 0; bytes < megabytes * 1e6; ) {
    let block = '';
    for (let line = 0; line < LINES_AT_ONCE; line++, at++) {
      block += makeLine(at, new Date(Date.UTC(2025, 3, 27, 16, 16) + at * 37).toISOString().slice(0, 19).replace('T', ' '));
    }
    bytes += writeSync(file, block);
  }
  closeSync(file);
  return { path, bytes };
}

async function measure({ path, bytes }) {
  const seconds = [];
  const peaks = [];
  const cpu = [];
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    const report =
      '--import=data:text/javascript,process.on("exit",()=>{const u=process.resourceUsage();console.error("peak",u.maxRSS,"cpu",u.userCPUTime+u.systemCPUTime)})';
    const child = spawn(process.execPath, [report, MAIN, 'diagnose', path], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    await once(child, 'close');
    seconds.push((performance.now() - began) / 1000);
    peaks.push(Number(/peak (\d+)/.exec(said)?.[1]) / 1024);
    cpu.push(bytes / Number(/cpu (\d+)/.exec(said)?.[1]));
  }
  return { seconds, cpu, peaks };
}

try {
  const loads = [load()];
  const rows = [];
  for (const [name, makeLine] of [
    ['a server at work', workLine],
    ['a sign in each line', signLine],
  ]) {
    const log = write(`${rows.length}.log`, makeLine);
    const { seconds, cpu, peaks } = await measure(log);
    loads.push(load());
    rows.push(
      `| ${name} | ${(log.bytes / 1e6).toFixed(0)} MB | ${withRange(seconds, 1)} | ${withRange(cpu)} | ${withRange(peaks)} |`,
    );
    rmSync(log.path);
  }
  console.log(`${machine(loads)}; ${rounds} rounds.\n`);
  console.log('| log | size | seconds, start to end | MB a second of CPU | largest memory, MiB |\n|---|---|---|---|---|');
  console.log(rows.join('\n'));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
