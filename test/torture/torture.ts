/**
 * The torture: at least `--kills` kills of Aerie, of an engine, or of both, evenly over the phases of a commit, on one
 * endpoint and on two, each death looked at by the judge. Started by `npm run torture`.
 *
 * Bounded: it ends when the kills are made or `--minutes` are over, and goes on from its result file (`--result`) the next
 * time. `--write` puts the result into docs/torture.md. Exit 1: something was lost, doubled or wrong; 5: time was up before all kills.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runLane } from './lane.ts';
import { allKinds, type Counts, countOf, type Kind, nameOf, owedFor, renderTable, sortComplaints, stillOwed } from './owed.ts';

const fileOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

interface Result {
  kills: Record<string, number>;
  processes: number;
  runs: number;
  records: number;
  lost: number;
  doubled: number;
  other: number;
  findings: string[];
  seconds: number;
}

const NOTHING: Result = {
  ...{ kills: {}, processes: 0, runs: 0, records: 0, lost: 0, doubled: 0, other: 0, findings: [], seconds: 0 },
};

export async function torture(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      kills: { type: 'string', default: '1000' },
      minutes: { type: 'string', default: '60' },
      seed: { type: 'string', default: '20261' },
      result: { type: 'string', default: fileOf('.cache/torture.json') },
      fresh: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
    },
  });
  const result = values.fresh ? structuredClone(NOTHING) : readResult(values.result);
  const owed = owedFor(Number(values.kills));
  const endsAt = performance.now() + Number(values.minutes) * 60_000;
  const before = result.seconds;
  const startedAt = performance.now();
  const keep = () => {
    result.seconds = before + (performance.now() - startedAt) / 1000;
    keepResult(values.result, result);
  };
  // One lane an endpoint count: two cores are busy, and a failure in one does not stop the other.
  await Promise.all([1, 2].map((endpoints) => lane(endpoints, Number(values.seed), { owed, result, keep, endsAt })));
  keep();
  const text = render(result, values);
  console.log(text);
  if (values.write) writeDocument(text);
  if (result.lost + result.doubled + result.other > 0) return 1;
  return [1, 2].every((endpoints) => stillOwed(owed, result.kills, endpoints).length === 0) ? 0 : 5;
}

interface Torturing {
  readonly owed: Counts;
  readonly result: Result;
  readonly keep: () => void;
  readonly endsAt: number;
}

async function lane(endpoints: number, seed: number, { owed, result, keep, endsAt }: Torturing): Promise<void> {
  const all = countOf(owed, () => true);
  await runLane({
    endpoints,
    random: randomFrom(seed * 2 + endpoints + Math.round(result.seconds)),
    owed: () => (performance.now() > endsAt ? [] : stillOwed(owed, result.kills, endpoints)),
    onKill(kind: Kind) {
      result.kills[nameOf(kind)] = (result.kills[nameOf(kind)] ?? 0) + 1;
    },
    onRun({ records, processes }) {
      result.runs += 1;
      result.records += records;
      result.processes += processes;
      keep();
      const made = countOf(result.kills, () => true);
      console.error(`${Math.round(result.seconds)} s: ${made} of ${all} kills, ${result.runs} runs, ${result.records} records`);
    },
    onFinding({ folder, complaints }) {
      const { lost, doubled, other } = sortComplaints(complaints);
      result.lost += lost;
      result.doubled += doubled;
      result.other += other;
      result.findings.push(...complaints.slice(0, 5).map((complaint) => complaint.slice(0, 2_000)));
      keep();
      console.error(`FOUND, kept in ${folder}:\n  ${complaints.slice(0, 20).join('\n  ')}`);
    },
  });
}

function readResult(path: string): Result {
  return existsSync(path) ? { ...NOTHING, ...(JSON.parse(readFileSync(path, 'utf8')) as Result) } : structuredClone(NOTHING);
}

function keepResult(path: string, result: Result): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, JSON.stringify(result, undefined, 2));
  renameSync(`${path}.new`, path);
}

function render(result: Result, { kills, seed }: { readonly kills: string; readonly seed: string }): string {
  const made = countOf(result.kills, () => true);
  const unfinished = allKinds().some((kind) => (result.kills[nameOf(kind)] ?? 0) < (owedFor(Number(kills))[nameOf(kind)] ?? 0));
  const findings = result.findings.map((finding) => `- ${finding}`).join('\n');
  return `\`npm run torture -- --kills ${kills} --seed ${seed} --write\`; ${cpus()[0]?.model.trim() ?? 'CPU'}, ${cpus().length} cores, Node ${process.versions.node}.

${renderTable(result.kills)}

**${made} kills** (${result.processes} processes) in ${Math.round(result.seconds)} s over ${result.runs} runs, which ended with ${result.records} records in all.
**Lost: ${result.lost}. Doubled: ${result.doubled}. Other complaints of the judge: ${result.other}.**${unfinished ? ' Not finished: the time was up before all kills were made.' : ''}
${findings === '' ? '' : `\n${findings}\n`}`;
}

const [BEGIN, END] = ['<!-- result: begin -->', '<!-- result: end -->'];

function writeDocument(text: string): void {
  const path = fileOf('docs/torture.md');
  const [before = '', rest = ''] = readFileSync(path, 'utf8').split(BEGIN);
  const after = rest.split(END)[1];
  if (after === undefined) throw new Error(`${path} has no place for a result`);
  writeFileSync(path, `${before}${BEGIN}\n\n${text}\n${END}${after}`);
}

/** A seed tells what is tried; what the processes do meanwhile varies by itself. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
