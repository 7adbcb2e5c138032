/**
 * The judge of a run that was killed. It knows the formats and nothing of Aerie's code, so a mistake that Aerie makes both
 * in writing and in reading does not pass here. Its witness of what was really answered is the lookalike's journal.
 *
 * `peek` looks while a worker lives, as any reader may; `look` between two lives; `finish` after the run has ended by
 * itself. What was seen once must be there ever after. Every complaint is collected; the error has them all.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { JudgedFiles } from './judge-files.ts';
import { type LedgerRows, type RecordRow, readLedger, type TurnRow } from './judge-ledger.ts';
import { type Answered, type ExpectedPartition, Witness } from './judge-witness.ts';

export interface JudgeOptions {
  readonly runFolder: string;
  readonly journal: string;
  readonly partitions: readonly ExpectedPartition[];
}

interface JudgedTurn {
  readonly continues: number;
  readonly promptIds: readonly number[];
  readonly outputIds: readonly number[];
  readonly text: string;
  readonly finish: string;
  readonly seed: number;
}

interface JudgedRecord {
  readonly id: string;
  readonly partition: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly turns: readonly JudgedTurn[];
}

interface SeenTurn {
  readonly body: JudgedTurn;
  readonly hash: string;
  /** How often it had been asked when it was seen: it must stay so. */
  readonly asked: number;
}

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');

export class Judge {
  readonly #options: JudgeOptions;
  readonly #files: JudgedFiles;
  readonly #records = new Map<string, RecordRow>();
  readonly #turns = new Map<string, SeenTurn>();
  readonly #events = new Map<number, string>();
  #complaints: string[] = [];

  constructor(options: JudgeOptions) {
    this.#options = options;
    this.#files = new JudgedFiles(options.runFolder, (text) => this.#complain(text));
  }

  /** What `seen` so far: for tests that must know that there was something to lose. */
  get seen(): { readonly records: number; readonly turns: number } {
    return { records: this.#records.size, turns: this.#turns.size };
  }

  /** While a worker lives. Remembers what a reader is shown; a ledger that is not there yet shows nothing. */
  peek(): void {
    const rows = readLedger(this.#options.runFolder, 'in place');
    if (rows === undefined) return;
    this.#remember(rows, new Witness(this.#options.journal, this.#options.partitions));
    this.#raise('while a worker lives');
  }

  /** Bytes below `records/` that the ledger does not vouch for: the torn tails of a killed worker. */
  uncommittedBytes(): number {
    return this.#files.uncommittedBytes(readLedger(this.#options.runFolder, 'copied'));
  }

  /** Between two lives: everything but completeness. */
  look(): void {
    const { runFolder, journal, partitions } = this.#options;
    const rows = readLedger(runFolder, 'copied');
    if (rows === undefined) {
      if (this.#records.size + this.#events.size > 0) this.#complain('the ledger is gone');
      this.#raise('between two lives');
      return;
    }
    this.#judge(rows, new Witness(journal, partitions));
    this.#raise('between two lives');
  }

  /** After the run has ended by itself: everything is there, once, and nothing lies around. */
  finish(): void {
    const { runFolder, journal, partitions } = this.#options;
    const rows = readLedger(runFolder, 'copied');
    if (rows === undefined) throw new Error('a finished run has no ledger');
    const witness = new Witness(journal, partitions);
    this.#judge(rows, witness);
    this.#judgeCompleteness(rows, witness);
    for (const [key, { hash, body, asked }] of this.#turns) {
      const now = witness.timesAsked(hash, body.seed);
      if (now !== asked) this.#complain(`turn ${key} was in the ledger and was asked again: ${asked} times, then ${now}`);
    }
    this.#raise('at the end');
  }

  #judge(rows: LedgerRows, witness: Witness): void {
    if (rows.integrity !== 'ok') this.#complain(`the ledger is damaged: ${rows.integrity}`);
    this.#judgeCounters(rows);
    this.#files.judge(rows);
    const live = new Map<string, RecordRow>();
    for (const record of rows.records.filter(({ state }) => state === 'live')) {
      const key = `${record.partition}/${record.id}`;
      if (live.has(key)) this.#complain(`prompt ${key} has two live records`);
      live.set(key, record);
      this.#judgeRecord(record, witness);
    }
    for (const [key, before] of this.#records) {
      const now = live.get(key);
      // A rule that came later may take it away: its bytes stay, and are accounted for as withdrawn.
      if (rows.records.some((row) => row.state === 'withdrawn' && isSamePlace(row, before))) this.#records.delete(key);
      else if (now === undefined) this.#complain(`record ${key} was shown as done and is gone`);
      else if (!isSamePlace(now, before)) this.#complain(`record ${key} was shown as done and is now another`);
    }
    for (const turn of rows.turns) this.#judgeTurn(turn, witness);
    this.#judgeEvents(rows);
    this.#remember(rows, witness);
  }

  #judgeRecord(row: RecordRow, witness: Witness): void {
    const key = `${row.partition}/${row.id}`;
    const line = this.#files.bytesOf(row);
    if (line === undefined || sha256(line) !== row.sha256 || line.indexOf(0x0a) !== line.length - 1) {
      this.#complain(`record ${key} is not the line that was committed`);
      return;
    }
    const record = JSON.parse(line.toString('utf8')) as JudgedRecord;
    if (record.id !== row.id || record.partition !== row.partition) this.#complain(`record ${key} says it is ${record.id}`);
    if (!witness.isInput(row.partition, record.messages)) this.#complain(`record ${key} answers what nobody asked`);
    const users = record.messages.filter(({ role }) => role === 'user').length;
    if (record.turns.length !== users || row.turns !== users) this.#complain(`record ${key} has not one turn a question`);
    const tokens = record.turns.reduce((sum, { outputIds }) => sum + outputIds.length, 0);
    if (tokens !== row.tokens) this.#complain(`record ${key} has ${tokens} tokens, the ledger says ${row.tokens}`);
    let before: readonly number[] = [];
    for (const [at, turn] of record.turns.entries()) {
      const hash = witness.hashOf(record.messages, record.turns, at);
      const promptIds = [...before.slice(0, turn.continues), ...turn.promptIds];
      before = [...promptIds, ...turn.outputIds];
      if (!witness.wasAnswered(hash, turn.seed, answerOf(turn, promptIds)))
        this.#complain(`turn ${at} of record ${key} is no answer that the engine gave`);
      const seen = this.#turns.get(`${key}/${at}`);
      if (seen !== undefined && JSON.stringify(seen.body.outputIds) !== JSON.stringify(turn.outputIds))
        this.#complain(`turn ${at} of record ${key} is not the one that was stored before`);
    }
  }

  /** A stored turn of an unfinished conversation is an answer of the engine too. */
  #judgeTurn(row: TurnRow, witness: Witness): void {
    const key = `${row.partition}/${row.id}/${row.turn}`;
    const { body, hash } = this.#hashOfStored(row, witness);
    if (body.outputIds.length !== row.tokens) this.#complain(`turn ${key} has other tokens than the ledger says`);
    if (!witness.wasAnswered(hash, body.seed, answerOf(body, undefined)))
      this.#complain(`turn ${key} is no answer that the engine gave`);
  }

  #hashOfStored(row: TurnRow, witness: Witness): { body: JudgedTurn; hash: string } {
    const body = JSON.parse(row.body) as JudgedTurn;
    const before = row.before.map((text) => JSON.parse(text) as JudgedTurn);
    return { body, hash: witness.hashOf(this.#promptOf(row), before, row.turn) };
  }

  #promptOf({ partition, id, offset, bytes }: TurnRow): JudgedRecord['messages'] {
    const line = readFileSync(join(this.#options.runFolder, 'prompts', `${partition}.jsonl`)).subarray(offset, offset + bytes);
    const prompt = JSON.parse(line.toString('utf8')) as Pick<JudgedRecord, 'id' | 'messages'>;
    if (prompt.id !== id) this.#complain(`the ledger points at prompt ${prompt.id} for ${id}`);
    return prompt.messages;
  }

  #judgeCounters(rows: LedgerRows): void {
    for (const { name, counted, counters } of rows.partitions) {
      for (const [counter, value] of Object.entries(counted)) {
        if (counters[counter] !== value) this.#complain(`${name}: ${counter} is ${counters[counter]}, the rows say ${value}`);
      }
    }
    if (rows.attempts !== rows.outcomes) this.#complain('the totals of outcomes are not the attempts');
  }

  /** Nobody was told what the ledger does not know: every line of the log is an event of the ledger, for ever. */
  #judgeEvents(rows: LedgerRows): void {
    const now = new Map(rows.events.map(({ n, kind, subject }) => [n, `${kind} ${subject}`]));
    for (const [n, event] of this.#events) {
      if (now.get(n) !== event) this.#complain(`event ${n} (${event}) was shown and is now ${now.get(n) ?? 'gone'}`);
    }
    const log = join(this.#options.runFolder, 'logs', 'aerie.log');
    const lines = existsSync(log)
      ? readFileSync(log, 'utf8')
          .split('\n')
          .filter((line) => line.endsWith('}'))
      : [];
    for (const line of lines) {
      const { n, kind, subject } = JSON.parse(line) as { n: number; kind: string; subject: string };
      if (now.get(n) !== `${kind} ${subject}`) this.#complain(`the log tells of event ${n} (${kind}), the ledger does not`);
    }
  }

  #judgeCompleteness(rows: LedgerRows, witness: Witness): void {
    const { partitions, runFolder } = this.#options;
    for (const { name, prompts, duplicates, badLines } of partitions) {
      const counters = rows.partitions.find((partition) => partition.name === name)?.counters ?? {};
      const records = rows.records.filter(({ partition, state }) => partition === name && state === 'live');
      const answered = new Set(records.map((row) => witness.inputKey(this.#messagesOf(row))));
      const missing = prompts.filter((messages) => !answered.has(witness.inputKey(messages)));
      if (missing.length > 0) this.#complain(`${name}: ${missing.length} of ${prompts.length} prompts have no record`);
      const wanted = {
        enrolled: prompts.length,
        done: prompts.length,
        duplicates,
        rejected: badLines.length,
        aside: 0,
        leased: 0,
      };
      for (const [counter, value] of Object.entries(wanted)) {
        if (counters[counter] !== value) this.#complain(`${name}: ${counter} is ${counters[counter]}, the input has ${value}`);
      }
      this.#files.sameSize(join(runFolder, 'prompts', `${name}.jsonl`), counters['prompts_bytes']);
      const rejected = join(runFolder, 'rejected', `${name}.ndjson`);
      this.#files.sameSize(rejected, counters['rejected_bytes']);
      const lines = existsSync(rejected)
        ? readFileSync(rejected, 'utf8')
            .split('\n')
            .filter((line) => line !== '')
        : [];
      const named = lines.map((line) => (JSON.parse(line) as { line: number }).line);
      if (named.join() !== badLines.join()) this.#complain(`${name}: refused are lines ${named.join()}, not ${badLines.join()}`);
      this.#files.judgeEnd(name, rows);
    }
    if (rows.turns.length > 0) this.#complain(`${rows.turns.length} turns are left of finished conversations`);
  }

  #messagesOf(row: RecordRow): JudgedRecord['messages'] {
    return (JSON.parse((this.#files.bytesOf(row) ?? Buffer.from('{}')).toString('utf8')) as JudgedRecord).messages ?? [];
  }

  #remember(rows: LedgerRows, witness: Witness): void {
    for (const record of rows.records) if (record.state === 'live') this.#records.set(`${record.partition}/${record.id}`, record);
    for (const { n, kind, subject } of rows.events) this.#events.set(n, `${kind} ${subject}`);
    for (const row of rows.turns) {
      const key = `${row.partition}/${row.id}/${row.turn}`;
      if (this.#turns.has(key)) continue;
      const { body, hash } = this.#hashOfStored(row, witness);
      this.#turns.set(key, { body, hash, asked: witness.timesAsked(hash, body.seed) });
    }
  }

  #complain(text: string): void {
    this.#complaints.push(text);
  }

  #raise(when: string): void {
    const complaints = this.#complaints;
    this.#complaints = [];
    if (complaints.length === 0) return;
    const shown = complaints.slice(0, 20).join('\n  ');
    const said = `The judge, ${when}, has ${complaints.length} complaints about ${this.#options.runFolder}:\n  ${shown}`;
    throw new JudgeError(said, complaints);
  }
}

export class JudgeError extends Error {
  readonly complaints: readonly string[];

  constructor(message: string, complaints: readonly string[]) {
    super(message);
    this.complaints = complaints;
  }
}

function answerOf(turn: JudgedTurn, promptIds: readonly number[] | undefined): Answered {
  return {
    outputIds: sha256(JSON.stringify(turn.outputIds)),
    promptIds: promptIds === undefined ? undefined : sha256(JSON.stringify(promptIds)),
    text: sha256(turn.text),
    finish: turn.finish,
  };
}

function isSamePlace(a: RecordRow, b: RecordRow): boolean {
  return a.partition === b.partition && a.shard === b.shard && a.offset === b.offset && a.sha256 === b.sha256;
}
