/** `aerie server logs`: the log of a launch, as the server wrote it, from the beginning or its last lines; followed if asked for. */
import { AerieError } from '../../base/errors.ts';
import { dirname, join } from 'node:path';
import type { OperationContext } from '../context.ts';
import { findRun } from '../find-run.ts';
import { launchPaths } from '../servers/launch-paths.ts';
import { machineOf } from '../servers/machine-of.ts';
import { openBook } from '../../server/launch/launch-book.ts';
import { NOTHING_KEPT } from '../../server/recovery/kept-changes.ts';
import { chooseServers, type ServerInput } from './choose-servers.ts';

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
}

const CHUNK_BYTES = 2 ** 20;
const LOOK_EVERY_MS = 500;

export async function runServerLogs(input: ServerLogsInput, context: OperationContext): Promise<ServerLogsReport> {
  const { run } = await findRun(input.run);
  const [server, other] = chooseServers(run, input);
  if (server === undefined || other !== undefined) throw severalServers(run.servers.map(({ name }) => name));
  const book = await openBook(run.serverFolder, server.name, NOTHING_KEPT).read();
  const launch = input.launch ?? book.launches;
  const machine = machineOf(server, context);
  const { logPath: current } = book.current ?? (await launchPaths(run, server, machine));
  const path = launch === book.launches ? current : `${current}.${launch}`;
  const first = await machine.readFile(path, 0, 1);
  if (first === undefined) throw noLog(path, launch, book.launches);
  let offset = input.lines === undefined ? 0 : await findTail(machine, path, first.size, input.lines);
  for (;;) {
    const read = await machine.readFile(path, offset, CHUNK_BYTES);
    if (read !== undefined && read.bytes.length > 0) {
      input.onBytes(read.bytes);
      offset += read.bytes.length;
      if (offset < read.size) continue;
    }
    if (input.follow !== true || context.drain.aborted) break;
    await context.host.clock.sleep(LOOK_EVERY_MS, context.drain);
  }
  return { server: server.name, launch, log: path, bytes: offset };
}

type Readable = Pick<ReturnType<typeof machineOf>, 'readFile'>;

/** Where the last lines begin, read backwards in chunks. */
async function findTail(machine: Readable, path: string, size: number, lines: number): Promise<number> {
  let found = 0;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const bytes = (await machine.readFile(path, start, end - start))?.bytes ?? new Uint8Array();
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

function noLog(path: string, launch: number, launches: number): AerieError {
  return new AerieError('log.unreadable', `There is no log of launch ${launch} at ${path}.`, {
    because: launches === 0 ? 'Nothing was launched yet.' : `Launches so far: ${launches}.`,
    remedy: `Launch it with aerie server start, or look into ${dirname(path)}.`,
  });
}
