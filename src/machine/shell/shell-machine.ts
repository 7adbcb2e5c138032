/**
 * A machine that is asked in POSIX sh and coreutils alone, over a wire (`shell-wire.ts`): what `machine.ts` promises, for a machine
 * where nothing of Aerie is. One script per question, one round trip per script. How it is reached is the wire's concern.
 *
 * On failure: a wire that is lost, or an answer that is none, is `machine.unreachable`, and never `nothing runs there`.
 */
import { randomBytes } from 'node:crypto';
import { AerieError } from '../../base/errors.ts';
import type { CommandResult } from '../../host/commands.ts';
import type { Clock } from '../../host/host.ts';
import { describeHolders, gpuLookOf, listedPids } from '../describe-holders.ts';
import { describeFailedStart } from '../failed-start.ts';
import { lookUntilTold } from '../look-until-told.ts';
import type { DetachedStart, Machine, ProcessIdentity } from '../machine.ts';
import { NVIDIA_SMI_MS, QUERY_COMPUTE_APPS, QUERY_GPUS } from '../nvidia-smi.ts';
import type { ShellReply, ShellRequest, ShellWire } from '../shell-wire.ts';
import { type Frames, frameFunctions, parseFrames, renderNonce } from './frames.ts';
import { parseHolders, renderHolders } from './holders-script.ts';
import { parseCarriers, parseLook, renderLook } from './look-script.ts';
import { parsePortOwner, renderPortOwner } from './port-script.ts';
import { parseReadFile, renderReadFile } from './read-file-script.ts';
import { parseResources, renderResources } from './resources-script.ts';
import { findOddName, parseRun, renderRun, type ShellCommand } from './run-script.ts';
import { parseSignal, renderSignal } from './signal-script.ts';
import { parseStart, renderStart } from './start-script.ts';

export type ShellMachine = Omit<Machine, 'reach' | 'onReachChange' | 'close' | 'isHere'>;

/** A look takes a fraction of a second; a machine that swaps, or a network disk that is away, takes long. */
const QUESTION_MS = 60_000;

/** Setup lines may build or download. A connection that is dead is told by the wire, long before. */
const START_MS = 24 * 3_600_000;

/** As `runCommand` keeps of a command's output. */
const OUTPUT_BYTES = 4_000_000;

export function shellMachine(wire: ShellWire, { name, clock }: { readonly name: string; readonly clock: Clock }): ShellMachine {
  const lines: Line = { wire, name };
  let home: Promise<string> | undefined;
  return {
    name,
    home: () => {
      home ??= askHome(lines).catch((thrown: unknown) => {
        home = undefined;
        throw thrown;
      });
      return home;
    },
    run: ({ timeoutMs, signal, ...command }) => runThere(lines, command, { timeoutMs, ...(signal && { signal }) }),
    start: (request) => startThere(lines, request),
    look: (identity, launch) => lookUntilTold(() => lookOnce(lines, identity, launch), clock),
    findByMarker: async (marker) =>
      parseCarriers(await ask(lines, (nonce) => renderLook({ marker, pid: 0, statusPath: undefined }, nonce))),
    signal: async (identity, signal) => {
      const frames = await ask(lines, (nonce) => renderSignal(identity, signal, nonce));
      return parseSignal(frames) ?? noAnswer(name, '');
    },
    gpus: async () => gpuLookOf(await askSmi(lines, QUERY_GPUS)),
    holders: () => lookForHolders(lines),
    resources: async (paths) => parseResources(await ask(lines, (nonce) => renderResources(paths, nonce)), paths),
    portOwner: async (port) => parsePortOwner(await ask(lines, (nonce) => renderPortOwner(port, nonce)), port),
    readFile: async (path, offset, most) => {
      const reply = await send(lines, { script: renderReadFile({ path, offset, most }), most: most + SIZE_LINE, ...QUESTION });
      const slice = parseReadFile(reply.stdout);
      if (slice === 'unread') return noAnswer(name, reply.stderr);
      return slice === 'none' ? undefined : slice;
    },
  };
}

/** Above the digits of any size. */
const SIZE_LINE = 64;

const QUESTION = { timeoutMs: QUESTION_MS, mayRepeat: true } as const;

interface Line {
  readonly wire: ShellWire;
  readonly name: string;
}

async function lookOnce(
  line: Line,
  identity: ProcessIdentity,
  { marker, statusPath }: Pick<DetachedStart, 'marker' | 'statusPath'>,
) {
  const frames = await ask(line, (nonce) => renderLook({ marker, pid: identity.pid, statusPath }, nonce));
  return parseLook(frames, identity);
}

async function askHome(line: Line): Promise<string> {
  const frames = await ask(
    line,
    (nonce) => `${frameFunctions(nonce)}\ncase $HOME in /*) ;; *) HOME=$(cd && pwd) ;; esac\naerie_say home "$HOME"\n`,
  );
  const home = frames.get('home') ?? '';
  return home.startsWith('/') ? home : noAnswer(line.name, 'it has no home folder');
}

async function runThere(
  { wire, name }: Line,
  command: ShellCommand,
  limits: Pick<ShellRequest, 'timeoutMs' | 'signal'>,
): Promise<CommandResult> {
  const odd = findOddName(command.env ?? {});
  if (odd !== undefined) return { kind: 'died', because: `no shell can set a variable of the name ${odd}` };
  const nonce = newNonce();
  const reply = await wire.run({ script: renderRun(command, nonce), mayRepeat: true, most: OUTPUT_BYTES, ...limits });
  if (reply.kind === 'lost') return unreachable(name, reply.because);
  return reply.kind === 'ended' ? parseRun(reply, nonce) : reply;
}

function askSmi(line: Line, args: readonly string[]): Promise<CommandResult> {
  return runThere(line, { file: 'nvidia-smi', args }, { timeoutMs: NVIDIA_SMI_MS });
}

async function lookForHolders(line: Line) {
  const result = await askSmi(line, QUERY_COMPUTE_APPS);
  const listed = listedPids(result);
  const frames = await ask(line, (nonce) => renderHolders({ listed, isSmiThere: result.kind !== 'absent' }, nonce));
  return describeHolders({ result, ...parseHolders(frames, listed) });
}

async function startThere(line: Line, request: DetachedStart): Promise<ProcessIdentity> {
  const odd = findOddName(request.env);
  if (odd !== undefined)
    throw new AerieError('server.did-not-start', `No shell can set a variable of the name ${odd}.`, {
      remedy: 'Correct env: in the run file. Nothing was started.',
    });
  const nonce = newNonce();
  // Never asked twice: a start whose answer is lost is looked for by its marker.
  const reply = await line.wire.run({ script: renderStart(request, nonce), timeoutMs: START_MS, outlives: true });
  if (reply.kind !== 'ended') return unreachable(line.name, describeLoss(reply), MAYBE_STARTED);
  const started = parseStart(parseFrames(reply.stdout, nonce));
  if (started.kind === 'started') return started.identity;
  if (started.kind === 'unread') return noAnswer(line.name, reply.stderr);
  throw describeFailedStart(request, started.report, `${reply.stderr}\n${started.log}`);
}

const MAYBE_STARTED =
  'Whether the server was started is not known: the next look at the machine tells, and nothing is started twice.';

async function ask(line: Line, render: (nonce: string) => string): Promise<Frames> {
  const nonce = newNonce();
  const { stdout, stderr, code } = await send(line, { script: render(nonce), ...QUESTION });
  const frames = parseFrames(stdout, nonce);
  return code === 0 && frames.size > 0 ? frames : noAnswer(line.name, stderr);
}

async function send({ wire, name }: Line, request: ShellRequest): Promise<Extract<ShellReply, { kind: 'ended' }>> {
  const reply = await wire.run(request);
  return reply.kind === 'ended' ? reply : unreachable(name, describeLoss(reply));
}

function describeLoss(reply: Exclude<ShellReply, { kind: 'ended' }>): string {
  switch (reply.kind) {
    case 'lost':
      return reply.because;
    case 'timeout':
      return `no answer came in ${QUESTION_MS / 1000} s`;
    case 'aborted':
      return 'it was not waited for';
  }
}

function unreachable(name: string, because: string, more = ''): never {
  throw new AerieError('machine.unreachable', `${name} cannot be reached: ${because}`, {
    remedy: `What runs there goes on. ${more}`.trim(),
  });
}

/** A shell that cannot start a program, or one that is none. */
function noAnswer(name: string, said: string): never {
  const evidence = said.split('\n').filter((line) => line.trim() !== '');
  throw new AerieError('machine.unreachable', `${name} answers, but not to what it was asked.`, {
    remedy: `Look whether this works there:  sh -c 'head -v -c 9 /proc/self/stat'`,
    evidence: evidence.slice(-10), // lines: what a person reads
  });
}

function newNonce(): string {
  return renderNonce(randomBytes(8));
}
