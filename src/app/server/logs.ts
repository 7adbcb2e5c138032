/**
 * `aerie server logs`: the log of a launch, as the server wrote it, from the beginning or its last lines; followed if asked for. Where
 * only what was kept of it here can be read, that is shown, and the command ends with the reason: a script that takes exit 0 for
 * all of the log is not misled. Nothing more comes of a copy, so following ends there too.
 */
import { AerieError } from '../../base/errors.ts';
import { openBook } from '../../server/launch/launch-book.ts';
import { NOTHING_KEPT } from '../../server/recovery/kept-changes.ts';
import type { OperationContext } from '../context.ts';
import { findRun } from '../find-run.ts';
import { machineOf } from '../servers/machine-of.ts';
import { chooseServers, type ServerInput } from './choose-servers.ts';
import { type LogWanted, type OpenedLog, openLaunchLog } from './open-log.ts';
import { partialLog } from './partial-log.ts';

export interface ServerLogsInput extends ServerInput {
  /** Left out: the newest launch. */
  readonly launch?: number;
  /** Only the last lines; left out: all. */
  readonly lines?: number;
  readonly follow?: boolean;
  /** Told each piece of the log, in order. */
  readonly onBytes: (bytes: Uint8Array) => void;
}

export interface ServerLogsReport {
  readonly server: string;
  readonly launch: number;
  readonly log: string;
  readonly bytes: number;
  /** It was not the whole log, or not the log as it is now. */
  readonly failure: AerieError | undefined;
}

const CHUNK_BYTES = 2 ** 20;
const LOOK_EVERY_MS = 500;
/** A person waits; a jump host takes some seconds. */
const LOGS_PATIENCE_MS = 15_000;

export async function runServerLogs(input: ServerLogsInput, context: OperationContext): Promise<ServerLogsReport> {
  const { run } = await findRun(input.run);
  const [server, other] = chooseServers(run, input);
  if (server === undefined || other !== undefined) throw severalServers(run.servers.map(({ name }) => name));
  const book = await openBook(run.serverFolder, server.name, NOTHING_KEPT).read();
  const launch = input.launch ?? book.launches;
  const machine = machineOf(server, context, LOGS_PATIENCE_MS);
  const { launches, current } = book;
  return await tell(input, context, { run, server, machine, launch, launches, current, onNote: context.onNote });
}

async function tell(input: ServerLogsInput, context: OperationContext, wanted: LogWanted): Promise<ServerLogsReport> {
  const log = await openLaunchLog(wanted);
  const size = (await log.read(0, 1))?.size ?? 0;
  let offset = input.lines === undefined ? 0 : await findTail(log, size, input.lines);
  const shown = { lines: 0, bytes: 0, keptBytes: 0 };
  for (;;) {
    const read = await log.read(offset, CHUNK_BYTES);
    if (read !== undefined && read.bytes.length > 0) {
      input.onBytes(read.bytes);
      offset += read.bytes.length;
      shown.bytes += read.bytes.length;
      shown.keptBytes += log.kept === undefined ? 0 : read.bytes.length;
      shown.lines += linesIn(read.bytes);
      if (offset < read.size && !context.drain.aborted) continue;
    }
    if (input.follow !== true || log.kept !== undefined || context.drain.aborted) break;
    await context.host.clock.sleep(LOOK_EVERY_MS, context.drain);
  }
  const failure = log.kept === undefined ? undefined : partialLog(wanted.machine.name, log.kept, shown);
  return { server: wanted.server.name, launch: wanted.launch, log: log.path, bytes: offset, failure };
}

function linesIn(bytes: Uint8Array): number {
  return bytes.reduce((count, byte) => (byte === 0x0a ? count + 1 : count), 0);
}

/** Where the last lines begin, read backwards in chunks. */
async function findTail(log: OpenedLog, size: number, lines: number): Promise<number> {
  let found = 0;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const bytes = (await log.read(start, end - start))?.bytes ?? new Uint8Array();
    for (let at = bytes.length - 1; at >= 0; at -= 1) {
      const isEnd = start + at === size - 1; // the line feed behind the last line begins no other
      if (bytes[at] === 0x0a && !isEnd) found += 1;
      if (found === lines && bytes[at] === 0x0a && !isEnd) return start + at + 1;
    }
    end = start;
  }
  return 0;
}

function severalServers(names: readonly string[]): AerieError {
  return new AerieError('usage.flag', `The run file launches several servers: ${names.join(', ')}.`, {
    remedy: 'Say which: --server NAME',
  });
}
