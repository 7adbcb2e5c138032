/**
 * How long a resume takes when a million records are finished and nothing is left: `aerie run` and `aerie status`, the real command
 * line from its start to its end. Build first, then `npm run bench:resume -- [--records 1000000] [--rounds 3]`. Prints Markdown.
 *
 * The run folder is made by Aerie's own ledger, prompt file and shards, with small records and a source of as many rows; it
 * lies in a temporary folder that is deleted afterwards. Nobody listens at the address of its server: a run with nothing left asks nobody.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { enrolPartition } from '../dist/generation/enrol.js';
import { ShardSet } from '../dist/generation/shard-set.js';
import { nodeHost } from '../dist/host/node-host.js';
import { openSqliteLedger } from '../dist/ledger/sqlite/open-ledger.js';
import { LineBuffer } from '../dist/shard/line-buffer.js';
import { renderRecord } from '../dist/shard/render-record.js';
import { identityOf } from '../dist/spec/identity.js';
import { readRunFile } from '../dist/spec/read-run-file.js';
import { load, machine, withRange } from './statistics.mjs';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
/** Records in one commit here, so that building takes a minute; a worker commits at most 256. */
const BATCH = 4_096;

const { values: flags } = parseArgs({
  options: { records: { type: 'string', default: '1000000' }, rounds: { type: 'string', default: '3' } },
});
const records = Number(flags.records);
const folder = mkdtempSync(join(tmpdir(), 'aerie-bench-'));

function writeProject() {
  let rows = '';
  for (let at = 0; at < records; at++) rows += `{"prompt":"What follows from rule ${at}?"}\n`;
  writeFileSync(join(folder, 'prompts.jsonl'), rows);
  const run = {
    run: 'bench',
    model: 'mock',
    sampling: { 'max-tokens': 64 },
    servers: [{ engine: 'vllm', attach: 'http://127.0.0.1:9' }],
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
  };
  writeFileSync(join(folder, 'run.yaml'), JSON.stringify(run));
}

const buffer = new LineBuffer();

function lineOf(lease, run, launch) {
  const turn = {
    continues: 0,
    promptIds: [1, 2, 3, 4],
    outputIds: [5, 6, 7, 8, 9, 10, 11, 0],
    endsWithStopId: true,
    text: 'It follows.',
    reasoning: '',
    toolCalls: [],
    finish: 'stop',
    usage: { prompt: 4, completion: 8, cached: 0 },
    seed: 7,
    server: 'vllm-0',
  };
  const record = {
    v: 1,
    id: lease.id,
    partition: lease.partition,
    messages: [{ role: 'user', content: 'What follows?' }],
    tools: [],
    turns: [turn],
    exact: true,
    inexactBecause: '',
    flags: [],
    sampling: run.sampling,
    provenance: {
      ...{ model: 'mock', revision: '', engine: 'vllm', engineVersion: '0.11.0', weights: 'unknown', kvCacheDtype: 'unknown' },
      ...{ templateHash: '', launch, aerie: '0.1.0' },
    },
  };
  return renderRecord(record, buffer);
}

/** What a worker does, without a server: enrols, leases, appends, commits. */
async function buildRun() {
  const { clock } = nodeHost();
  const run = readRunFile(await readFile(join(folder, 'run.yaml'), 'utf8'), join(folder, 'run.yaml'));
  for (const name of ['prompts', 'records', 'rejected', 'logs']) await mkdir(join(run.folder, name), { recursive: true });
  const ledger = openSqliteLedger(join(run.folder, 'ledger.sqlite'), { clock });
  ledger.setIdentity(identityOf(run));
  ledger.declarePartitions(run.partitions.map(({ name, budget, limit }) => ({ name, budget, limit })));
  const nothing = () => undefined;
  await enrolPartition({
    ...{ partition: run.partitions[0], ledger, folder: run.folder, signal: new AbortController().signal },
    ...{ onEvents: nothing, onBatch: nothing },
  });
  const launch = ledger.recordLaunch({
    ...{ server: 'vllm-0', engine: 'vllm', engineVersion: '0.11.0', kvCacheDtype: 'unknown', weights: 'unknown' },
    ...{ policyHash: '', detail: '{}', startedAt: clock.now() },
  });
  const shards = new ShardSet({ folder: run.folder, ledger });
  for (;;) {
    const leases = ledger.lease('B1', BATCH);
    if (leases.length === 0) break;
    const places = await shards.append(leases.map((lease) => ({ partition: 'B1', line: lineOf(lease, run, launch) })));
    buffer.reset();
    const at = clock.now();
    ledger.commit({
      records: leases.map(({ partition, id, fence }, nth) => ({
        ...{ partition, id, fence, tokens: 8, turns: 1, truncated: 0, launch },
        ...places[nth],
      })),
      attempts: leases.map(({ partition, id }) => ({
        ...{
          partition,
          id,
          turn: 0,
          launch,
          startedAt: at,
          endedAt: at,
          outcome: 'completed',
          status: 200,
          because: '',
          tokens: 8,
        },
      })),
      ...{ turns: [], asides: [], drops: [], happenings: [] },
    });
    shards.committed();
    await shards.sealFull((partition, { number, bytes, sha256 }) =>
      ledger.sealShard(partition, number, sha256, {
        kind: 'shard.sealed',
        subject: partition,
        facts: { shard: number, bytes, sha256 },
      }),
    );
  }
  await shards.close();
  ledger.close();
  return run.folder;
}

/** Seconds from start to end, which must be a good one with every record done. */
async function timed(verb) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [MAIN, verb, join(folder, 'run.yaml'), '--json'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [said, complained] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => (said += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (complained += text));
  const [code] = await once(child, 'close');
  const seconds = (performance.now() - startedAt) / 1000;
  const done = code === 0 ? JSON.parse(said).data.partitions[0].done : 0;
  if (done !== records) throw new Error(`aerie ${verb} ended with ${code}, ${done} of ${records} done: ${complained}${said}`);
  return seconds;
}

try {
  writeProject();
  const startedAt = performance.now();
  const runFolder = await buildRun();
  process.stderr.write(`built in ${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`);
  const ledgerMib = statSync(join(runFolder, 'ledger.sqlite')).size / 2 ** 20;
  const [runs, statuses, loads] = [[], [], []];
  for (let round = 0; round < Number(flags.rounds); round++) {
    loads.push(load());
    runs.push(await timed('run'));
    statuses.push(await timed('status'));
    process.stderr.write(`round ${round + 1}: run ${runs.at(-1).toFixed(2)} s, status ${statuses.at(-1).toFixed(2)} s\n`);
  }
  console.log(
    `\n${records.toLocaleString('en')} records, ledger ${ledgerMib.toFixed(0)} MiB\n${machine(loads)}; ${flags.rounds} rounds\n`,
  );
  console.log(`| command | seconds, start to end |\n|---|---|`);
  console.log(`| \`aerie run\`, nothing left | ${withRange(runs, 2)} |\n| \`aerie status\` | ${withRange(statuses, 2)} |`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
