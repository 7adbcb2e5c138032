/**
 * From what processes write to, to where the log of a server is, or what has to be asked next. Pure.
 * The server's own output decides. Only where it goes nowhere does an ancestor of its session, or a child, say more: what a service manager
 * writes is not the server's log.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import { containerOf } from '../../machine/cgroup.ts';
import { type Output, type ProcessOutputs, type SeenOutputs, unitOf, type WrittenFiles } from './process-outputs.ts';
import type { NoLog, SeenProcess, ServerLog } from './server-log.ts';

export type NextStep =
  | { readonly kind: 'found'; readonly log: ServerLog }
  /** Its first process is one of docker's: `docker logs` has what it writes. */
  | { readonly kind: 'ask-docker'; readonly container: string; readonly otherwise: NoLog }
  /** Who reads the pipe may write it into a file. */
  | { readonly kind: 'ask-readers'; readonly inode: string; readonly process: SeenProcess }
  | { readonly kind: 'ask-journal'; readonly unit: string; readonly isOfUser: boolean; readonly process: SeenProcess };

/** SGLang's logging goes to stderr, vLLM's to stdout; where both are one file it is the same. */
export type LoudStream = 'stdout' | 'stderr';

const NAME_IT = 'name it with log: in the run file';

export function judgeOutputs({ me, processes }: SeenOutputs, pid: number, loud: LoudStream): NextStep {
  const [first, ...others] = processes;
  if (first === undefined || first.pid !== pid)
    return none(`no process ${pid} is to be seen`, 'Ask again while the server runs.');
  const container = containerOf(first.cgroup);
  if (container.startsWith('docker-'))
    return {
      kind: 'ask-docker',
      container: container.slice('docker-'.length),
      otherwise: noneOf(
        `${describe(first)} runs in ${container}, and docker does not tell its log`,
        `Where the log is a file, ${NAME_IT}.`,
        first,
      ),
    };
  if (!first.isVisible) return found(notPermitted(first, me));
  return ofOutput(first, loud) ?? ofKin(first, others, loud) ?? found(unread(first));
}

/** undefined: its output goes nowhere. */
function ofOutput(process: ProcessOutputs, loud: LoudStream): NextStep | undefined {
  const outputs = loud === 'stderr' ? [...process.outputs].reverse() : process.outputs;
  const file = outputs.find(({ kind }) => kind === 'file');
  if (file !== undefined) return found(fileOf(process, file));
  const unit = unitOf(process.cgroup);
  if (unit !== undefined && outputs.some(({ kind }) => kind === 'socket'))
    return { kind: 'ask-journal', ...unit, process: seen(process) };
  const inode = outputs.map(({ target }) => /^pipe:\[(\d+)\]$/.exec(target)?.[1]).find((one) => one !== undefined);
  if (inode !== undefined) return { kind: 'ask-readers', inode, process: seen(process) };
  const terminal = outputs.find(({ kind }) => kind === 'terminal');
  if (terminal === undefined) return undefined;
  return none(
    `${describe(process)} writes to a terminal (${terminal.target})`,
    `Start the server with its output in a file (… >server.log 2>&1). Where it has a log of its own, ${NAME_IT}.`,
    process,
  );
}

function ofKin(first: ProcessOutputs, others: readonly ProcessOutputs[], loud: LoudStream): NextStep | undefined {
  for (const kin of others) {
    const isOfIt = kin.parent === first.pid || kin.session === first.session;
    if (!isOfIt || !kin.isVisible) continue;
    const outputs = loud === 'stderr' ? [...kin.outputs].reverse() : kin.outputs;
    const file = outputs.find(({ kind }) => kind === 'file');
    if (file !== undefined) return found({ ...fileOf(kin, file), process: seen(first) });
  }
  return undefined;
}

function fileOf(process: ProcessOutputs, { target, descriptor, isByName }: Output): ServerLog {
  return {
    kind: 'file',
    ...namedFile(target, isByName, `/proc/${process.pid}/fd/${descriptor}`),
    process: seen(process),
  };
}

/** The kernel writes ` (deleted)` behind the name that a file had; a file may be called so, too, and then its name leads to it. */
export function namedFile(target: string, isByName: boolean, descriptorPath: string) {
  const isDeleted = !isByName && target.endsWith(' (deleted)');
  return {
    path: isDeleted ? target.slice(0, -' (deleted)'.length) : target,
    readPath: isByName ? target : descriptorPath,
    isDeleted,
  };
}

/** Who reads a pipe and writes one file, as `tee` does, writes the log. */
export function judgeReaders(process: SeenProcess, readers: readonly (WrittenFiles & { readonly pid: number })[]): ServerLog {
  const others = readers.filter(({ pid }) => pid !== process.pid);
  for (const { pid, files } of others) {
    const [only, ...more] = [...new Map(files.map((file) => [file.path, file])).values()];
    if (only === undefined || more.length > 0) continue;
    return { kind: 'file', ...namedFile(only.path, only.isByName, `/proc/${pid}/fd/${only.descriptor}`), process };
  }
  const [reader] = others;
  const to = reader === undefined ? 'a pipe, and who reads it may not be seen' : `a pipe to ${reader.name} (pid ${reader.pid})`;
  return noneOf(`${describe(process)} writes into ${to}`, `Where that keeps a log in a file, ${NAME_IT}.`, process);
}

function unread(process: ProcessOutputs): NoLog {
  const [out, err] = process.outputs.map(({ kind, target }) => (kind === 'closed' ? 'nothing' : target));
  const where = out === err ? `${out}` : `${out} and ${err}`;
  return noneOf(
    `${describe(process)} writes to ${where}`,
    `Start the server with its output in a file (… >server.log 2>&1). Where it has a log of its own, ${NAME_IT}.`,
    process,
  );
}

function notPermitted(process: ProcessOutputs, me: string): NoLog {
  const whose = process.user === '' ? 'another user' : `user ${process.user}`;
  const self = me === '' ? 'this user' : `user ${me}`;
  return noneOf(
    `${describe(process)} belongs to ${whose}, and where it writes is not shown to ${self}`,
    `Somebody who may can say it:  sudo readlink /proc/${process.pid}/fd/1 /proc/${process.pid}/fd/2\nThen ${NAME_IT}.`,
    process,
  );
}

export function noneOf(because: string, remedy: string, process?: SeenProcess): NoLog {
  return { kind: 'none', because, remedy, ...(process === undefined ? {} : { process: seen(process) }) };
}

/** The program alone: keys stand on command lines. */
export function describe({ pid, words }: SeenProcess): string {
  const program = words[0] ?? '';
  return program === '' ? `process ${pid}` : `${quoteShell(program.slice(0, 80))} (pid ${pid})`;
}

function seen({ pid, words }: SeenProcess): SeenProcess {
  return { pid, words };
}

function found(log: ServerLog): NextStep {
  return { kind: 'found', log };
}

function none(because: string, remedy: string, process?: SeenProcess): NextStep {
  return found(noneOf(because, remedy, process));
}
