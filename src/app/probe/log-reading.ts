/**
 * The log of one server, read for a probe. Here it is read whole, as far as the time goes; elsewhere a survey brings its beginning and its end.
 * Promises: never a tail alone; line numbers are those of the file wherever the lines between could be counted; what was not read
 * is told in bytes.
 */

import { formatBytes, formatCount } from '../../base/units.ts';
import type { Account } from '../../diagnosis/account.ts';
import { LogReader, type ReadOptions } from '../../diagnosis/read-log.ts';
import type { Machine } from '../../machine/machine.ts';
import type { SurveyedLog } from '../../machine/survey/survey.ts';
import type { LogEnds } from '../../server/attach/log-ends.ts';

/** The reader goes through 126 MB a second: a thirtieth of a second each, so that questions are answered meanwhile. */
const CHUNK_BYTES = 4 * 2 ** 20;
/** Read of the end where the time was up before the whole was read. */
const ENDING_BYTES = 16 * 2 ** 20;
const LINE_FEEDS = Buffer.alloc(2 ** 20, '\n');
/** An hour of SGLang has some thousand lines; what is more than this is no log. */
const MOST_LINES = 100_000_000;

export class LogReading {
  readonly path: string;
  readonly #reader: LogReader;
  #bytes = 0;
  #read = 0;
  /** The byte that is read next. */
  #offset = 0;
  #areLinesKnown = true;
  /** Of a log that a program shows: lines that were left out; undefined = nobody counted them. */
  #linesLeft: number | undefined = 0;
  /** Epoch milliseconds of its machine; 0 = not told by the log. */
  writtenAt = 0;

  constructor(path: string, options: ReadOptions = {}) {
    this.path = path;
    this.#reader = new LogReader(options);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get read(): number {
    return this.#read;
  }

  get offset(): number {
    return this.#offset;
  }

  account(): Account {
    return this.#reader.account();
  }

  /** What of it was not read; '' = nothing. */
  get unread(): string {
    if (this.#linesLeft === undefined)
      return `${this.path}: its beginning and its end were read; what lies between was not counted in time, so line numbers after it are too small`;
    if (this.#linesLeft > 0)
      return `${this.path}: its beginning and its end were read, and ${formatCount(this.#linesLeft)} lines between them were not`;
    if (this.#read >= this.#bytes) return '';
    const lines = this.#areLinesKnown ? '' : '; lines after it could not be counted, so their numbers are too small';
    return `${this.path}: read ${formatBytes(this.#read)} of ${formatBytes(this.#bytes)}, its beginning and its end${lines}`;
  }

  /** Reads on, the whole of it; where `isOver` says so before its end, its last part. False: it is no file that can be read. */
  async readHere(machine: Pick<Machine, 'readFile'>, path: string, isOver: () => boolean): Promise<boolean> {
    for (;;) {
      const found = await machine.readFile(path, this.#offset, CHUNK_BYTES);
      if (found === undefined) return false;
      if (found.size < this.#offset) return true; // it was cut or begun anew: what was read stands
      this.#bytes = found.size;
      this.#take(found.bytes);
      if (found.bytes.length === 0 || this.#offset >= found.size) return true;
      if (isOver()) return this.#readEnding(machine, path, found.size);
    }
  }

  async #readEnding(machine: Pick<Machine, 'readFile'>, path: string, size: number): Promise<boolean> {
    const from = Math.max(this.#offset, size - ENDING_BYTES);
    const found = await machine.readFile(path, from, size - from);
    if (found === undefined) return false;
    this.#skipTo(from, undefined);
    this.#takeFrom(from, Buffer.from(found.bytes));
    return true;
  }

  takeSurveyed({ beginning, ending, counted, bytes }: SurveyedLog): void {
    this.#take(beginning);
    const end = ending.from + ending.bytes.length;
    this.#bytes = Math.max(bytes, end, this.#offset);
    if (ending.from > this.#offset) {
      const between = counted === undefined ? undefined : counted.lines - countLines(beginning) - countLines(ending.bytes);
      this.#skipTo(ending.from, between);
      this.#takeFrom(ending.from, ending.bytes);
    } else if (end > this.#offset) this.#take(ending.bytes.subarray(this.#offset - ending.from));
  }

  takeGrown({ grown, bytes }: SurveyedLog): void {
    this.#take(grown);
    this.#bytes = Math.max(this.#bytes, bytes);
  }

  /** Bytes that lie between are not known: as many as lines of this length have. */
  takeEnds({ beginning, between, ending, writtenAt }: LogEnds): void {
    this.#take(beginning);
    this.#linesLeft = between;
    if (between !== 0) {
      const lines = countLines(beginning) + countLines(ending);
      const mean = (beginning.length + ending.length) / Math.max(1, lines);
      this.#skipTo(this.#offset + Math.max(1, Math.round(mean * (between ?? 0))), between);
    }
    this.#take(ending);
    this.writtenAt = writtenAt;
  }

  /** What has come since. */
  takeMore(bytes: Uint8Array): void {
    this.#take(bytes);
  }

  #take(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#reader.feed(bytes);
    this.#offset += bytes.length;
    this.#read += bytes.length;
    this.#bytes = Math.max(this.#bytes, this.#offset);
  }

  /** `lines`: line feeds between what was read and there. */
  #skipTo(offset: number, lines: number | undefined): void {
    if (offset <= this.#offset) return;
    this.#offset = offset;
    this.#areLinesKnown = lines !== undefined && lines >= 0 && lines <= MOST_LINES;
    // At least one: the line that was cut there ends.
    for (let left = this.#areLinesKnown ? Math.max(1, lines ?? 1) : 1; left > 0; left -= LINE_FEEDS.length)
      this.#reader.feed(LINE_FEEDS.subarray(0, Math.min(left, LINE_FEEDS.length)));
  }

  /** The first line of an ending is half of one. */
  #takeFrom(offset: number, bytes: Buffer): void {
    this.#offset = offset;
    const eol = bytes.indexOf(0x0a);
    const rest = bytes.subarray(eol + 1);
    if (eol >= 0) this.#reader.feed(LINE_FEEDS.subarray(0, 1));
    this.#reader.feed(rest);
    this.#offset += bytes.length;
    this.#read += bytes.length;
  }
}

function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count += 1;
  return count;
}
