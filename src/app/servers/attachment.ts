/** The three kinds of `attach:`: the way to the server, where its log may be, and who answers there. */
import { AerieError } from '../../base/errors.ts';
import type { Happening } from '../../base/events.ts';
import { isLoopback } from '../../base/loopback.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { serverAddressOf } from '../../server/attach/container-facts.ts';
import { findServerLog } from '../../server/attach/find-log.ts';
import { noneOf } from '../../server/attach/judge-outputs.ts';
import type { LogPlace, NoLog, ServerLog } from '../../server/attach/server-log.ts';
import type { Attachment, RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';

export interface AttachmentOptions {
  readonly run: Pick<RunSpec, 'patienceMs'>;
  readonly server: Pick<ServerSpec, 'name' | 'log' | 'machine'>;
  readonly attach: Attachment;
  readonly engine: PlannedEngine;
  readonly context: Pick<OperationContext, 'host'>;
  readonly emit: (happening: Happening) => void;
  readonly signal: AbortSignal;
}

/** Between two looks at a container that does not run yet. */
const LOOK_EVERY_MS = 2_000;

/** Throws `server.unreachable` where there is no way to a container within the run's patience. */
export async function openAttachment(options: AttachmentOptions, machine: Machine): Promise<Reach> {
  const { attach } = options;
  if (attach.kind === 'url')
    return { baseUrl: attach.url, isOpen: () => true, drops: () => 0, refusal: () => undefined, close: async () => undefined };
  if (attach.kind === 'port') return await machine.reach(attach.port);
  return await openContainer(options, attach.container, machine);
}

async function openContainer(options: AttachmentOptions, container: string, machine: Machine): Promise<Reach> {
  const { run, server, engine, context, emit, signal } = options;
  const { clock } = context.host;
  const untilMs = clock.elapsed() + run.patienceMs;
  let said = '';
  for (;;) {
    const found = await lookAtContainer(machine, container, engine);
    if (found.kind === 'reached') return await machine.reach(found.port, found.address);
    const { because: seen, remedy } = found;
    if (seen !== said) emit({ kind: 'server.waiting', subject: server.name, facts: { seen, patienceMs: run.patienceMs } });
    said = seen;
    if (signal.aborted || clock.elapsed() >= untilMs)
      throw new AerieError('server.unreachable', `${server.name} cannot be attached to: ${seen}.`, {
        remedy: `${remedy} Nothing was sent to it.`,
      });
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

type FoundContainer =
  | { readonly kind: 'reached'; readonly port: number; readonly address: string }
  | { readonly kind: 'not-yet'; readonly because: string; readonly remedy: string };

async function lookAtContainer(machine: Machine, word: string, engine: PlannedEngine): Promise<FoundContainer> {
  const log = await findServerLog(machine, { container: word });
  const { container } = log;
  if (container === undefined) return notYet(log);
  const address = serverAddressOf(container, engine);
  if (address.kind === 'reached') return address;
  return {
    kind: 'not-yet',
    because: address.because,
    remedy: `Start it with its port published (docker run -p 127.0.0.1:PORT:PORT …), or attach to its address: attach: http://HOST:PORT.`,
  };
}

function notYet(log: ServerLog): FoundContainer {
  const { because, remedy } = log.kind === 'none' ? log : { because: 'it is not there', remedy: '' };
  return { kind: 'not-yet', because, remedy };
}

/** Where to look for its log, or why nowhere. */
export function logPlaceOf({ server, attach }: Pick<AttachmentOptions, 'server' | 'attach'>): LogPlace | NoLog {
  if (server.log !== '') return { path: server.log };
  if (attach.kind === 'docker') return { container: attach.container };
  if (attach.kind === 'port') return { port: attach.port };
  const { port, hostname, protocol } = new URL(attach.url);
  if (server.machine === undefined && !isLoopback(hostname))
    return noneOf(
      `the machine behind ${hostname} is not known here`,
      `Where you reach it by ssh, write attach: ssh://BOX:${port === '' ? 'PORT' : port} instead, or machine: BOX beside it.`,
    );
  return { port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
}

/** The process that listens, or the start of the container. */
export async function whoAnswers({ server, attach }: AttachmentOptions, machine: Machine): Promise<string> {
  if (attach.kind === 'docker') return startOf(await findServerLog(machine, { container: attach.container }));
  const place = attach.kind === 'port' ? { port: attach.port } : logPlaceOf({ server: { ...server, log: '' }, attach });
  const owner = 'port' in place ? await machine.portOwner(place.port) : undefined;
  return owner?.pid === undefined ? '' : String(owner.pid);
}

function startOf({ container }: ServerLog): string {
  return container === undefined ? '' : `${container.id} ${container.startedAt}`;
}
