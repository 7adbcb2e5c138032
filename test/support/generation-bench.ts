/**
 * A run in this process against a lookalike engine of its own: real HTTP, real files, the real clock. What came of it is
 * read back from the run folder and from the lookalike's journal, and compared by sha256.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { OperationContext } from '../../src/app/context.ts';
import type { Progress } from '../../src/app/progress.ts';
import { readLiveRecords } from '../../src/app/read-run.ts';
import { type RunReport, workOn } from '../../src/app/run.ts';
import { AerieError } from '../../src/base/errors.ts';
import type { Event } from '../../src/base/events.ts';
import type { Clock } from '../../src/host/host.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import type { AsideRow } from '../../src/ledger/ledger.ts';
import { openSqliteLedger } from '../../src/ledger/sqlite/open-ledger.ts';
import { promptIdsOf, type TrainingRecord } from '../../src/shard/record.ts';
import { readRunFile } from '../../src/spec/read-run-file.ts';
import { type Bench, sha256, startLookalike } from './lookalike-bench.ts';
import { readJournal } from './read-journal.ts';

export interface WorkRequest {
  /** One conversation each: a question, or the questions of several turns. */
  readonly prompts: readonly (string | readonly string[])[];
  readonly scenario?: object;
  /** Laid over the run file: `in-flight`, `attempt-timeout`, `patience` … */
  readonly settings?: Readonly<Record<string, string | number>>;
  readonly budget?: number;
  readonly maxTokens?: number;
  /** The port of an engine that the test starts and ends itself. */
  readonly port?: number;
  readonly clock?: Clock;
}

export interface Work {
  readonly bench: Bench | undefined;
  /** Ctrl-C, or SIGTERM, to the run under way. */
  stop(signal: 'SIGINT' | 'SIGTERM'): void;
  readonly events: Event[];
  progress(): Progress;
  /** Works until the end; the same call again resumes. */
  run(): Promise<{ readonly report?: RunReport; readonly error?: AerieError }>;
  left(): Promise<Left>;
}

/** What lies in the run folder. */
export interface Left {
  readonly records: readonly TrainingRecord[];
  readonly asides: readonly AsideRow[];
  readonly outcomes: Readonly<Record<string, number>>;
  readonly spentTokens: number;
  readonly leased: number;
  readonly waiting: number;
}

const EXPECTED_TOKENS = 40;

export async function openWork(request: WorkRequest): Promise<Work> {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-faults-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const scenario = { answerTokens: { kind: 'fixed', tokens: EXPECTED_TOKENS }, ...request.scenario };
  const bench = request.port === undefined ? await startLookalike({ scenario }) : undefined;
  const port = request.port ?? bench?.engine.port;
  const rows = request.prompts.map((prompt) => JSON.stringify({ turns: [prompt].flat() }));
  writeFileSync(join(folder, 'prompts.jsonl'), `${rows.join('\n')}\n`);
  const settings = Object.entries({ 'in-flight': 8, patience: '30s', ...request.settings });
  const budget = request.budget === undefined ? '' : `, budget: ${request.budget}`;
  const text = `run: faults
model: lookalike
servers: [{ engine: vllm, attach: 'http://127.0.0.1:${port}' }]
sampling: { max-tokens: ${request.maxTokens ?? 200}, seed: 7 }
partitions: [{ name: A, from: prompts.jsonl${budget} }]
${settings.map(([key, value]) => `${key}: ${value}`).join('\n')}
`;
  const run = readRunFile(text, join(folder, 'run.yaml'));
  let drain = new AbortController();
  let abort = new AbortController();
  const events: Event[] = [];
  let snapshot: (() => Progress) | undefined;
  const contextNow = (): OperationContext => ({
    host: { ...nodeHost(), env: {}, ...(request.clock === undefined ? {} : { clock: request.clock }) },
    onEvent: (event) => void events.push(event),
    onNote: () => undefined,
    onProgress: (given) => {
      snapshot = given;
    },
    drain: drain.signal,
    abort: abort.signal,
  });
  return {
    ...{ bench, events },
    stop(signal) {
      if (signal === 'SIGTERM') abort.abort(signal);
      drain.abort(signal);
    },
    progress() {
      if (snapshot === undefined) throw new Error('the run has not begun');
      return snapshot();
    },
    async run() {
      drain = new AbortController();
      abort = new AbortController();
      try {
        return { report: await workOn(run, 'run.yaml', contextNow()) };
      } catch (thrown) {
        if (!(thrown instanceof AerieError)) throw thrown;
        return { error: thrown };
      }
    },
    async left() {
      const ledger = openSqliteLedger(join(run.folder, 'ledger.sqlite'), { clock: nodeHost().clock, readOnly: true });
      try {
        const records: TrainingRecord[] = [];
        for await (const record of readLiveRecords({ run, ledger }, 'A')) records.push(record);
        const [counters] = ledger.partitions();
        const { spentTokens = -1, leased = -1, waiting = -1 } = counters ?? {};
        return { records, asides: ledger.setAsides('A'), outcomes: ledger.outcomeCounts(), spentTokens, leased, waiting };
      } finally {
        ledger.close();
      }
    },
  };
}

/** Turns of these records that the lookalike did not give in exactly this form, told by its journal; [] is right. */
export function unwitnessedTurns(records: readonly TrainingRecord[], journal: string): string[] {
  const given = new Set(
    readJournal(journal).flatMap((line) =>
      line.event === 'answered' && line.fault === '' && line.outputIds !== undefined
        ? [`${line.seed} ${line.promptIds?.sha256} ${line.outputIds.sha256} ${line.textSha256}`]
        : [],
    ),
  );
  return records.flatMap(({ id, turns }) => {
    const prompts = promptIdsOf(turns);
    return turns.flatMap(({ seed, outputIds, text }, at) => {
      const key = `${seed} ${sha256(JSON.stringify(prompts[at]))} ${sha256(JSON.stringify(outputIds))} ${sha256(text)}`;
      return given.has(key) ? [] : [`${id} turn ${at}`];
    });
  });
}

export const numbered = (count: number, word = 'question'): string[] => Array.from({ length: count }, (_, at) => `${word} ${at}`);
