/**
 * The watch of an attached server, put together: what it asks, whom it tells, and what it moves of whoever sends requests. It ends with
 * the way to the server. What it sees becomes events; nothing becomes of the server itself.
 */
import type { Happening } from '../../base/events.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import { dialectOf } from '../../engine/dialects.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { type AttachedSubject, openSubject } from '../../server/attach/attached-subject.ts';
import { AttachedWatch } from '../../server/attach/attached-watch.ts';
import { findServerLog } from '../../server/attach/find-log.ts';
import { openServerLog } from '../../server/attach/read-server-log.ts';
import { VerdictTeller } from '../../server/launch/tell-verdict.ts';
import type { Attachment, RunSpec, ServerSpec } from '../../spec/run.ts';
import { checkRemedy } from '../check-remedy.ts';
import type { OperationContext } from '../context.ts';
import { logPlaceOf, whoAnswers } from './attachment.ts';
import { secretHeaders } from './secrets.ts';

export interface WatchAttachedOptions {
  readonly run: Pick<RunSpec, 'patienceMs'>;
  readonly server: ServerSpec;
  readonly attach: Attachment;
  readonly engine: PlannedEngine;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  readonly signal: AbortSignal;
  readonly asked: () => { readonly inFlight: number; readonly answered: number };
  /** Who sends it requests; undefined: nobody yet. */
  readonly sender: () => Sender | undefined;
}

/** Of a `KeptServer`, what the watch moves. */
export interface Sender {
  readonly endpoint: object | undefined;
  suspect(): void;
  cut(): Promise<void>;
}

export function watchAttached(
  options: WatchAttachedOptions,
  machine: Machine,
  reach: Reach,
): { readonly watch: AttachedWatch; readonly reach: Reach } {
  const { server, attach, engine, context, emit, asked, sender } = options;
  const { host } = context;
  const control = host.openHttp({
    ...{ baseUrl: reach.baseUrl, connections: 2, headers: secretHeaders(server, host.env), isDirect: attach.kind !== 'url' },
  });
  const isBack = () => sender()?.endpoint !== undefined;
  const teller = new VerdictTeller({ name: server.name, emit, facts: { attached: true }, tellsEnds: true, isBack });
  const watch = new AttachedWatch({
    ...{ machine, dialect: dialectOf(engine), engine, control, reach, asked, checkRemedy, clock: host.clock },
    find: () => find(options, machine),
    whoAnswers: () => whoAnswers(options, machine),
    onLook: (verdict, progress) => teller.look(verdict, progress),
    onLookAnew: () => sender()?.suspect(),
    onCut: () => void sender()?.cut(),
  });
  void watch.run().catch((thrown: unknown) => {
    context.onNote(`${server.name} is not watched any more: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  });
  const close = async () => {
    watch.close();
    await control.close();
    await reach.close();
  };
  return {
    watch,
    reach: {
      baseUrl: reach.baseUrl,
      ...{ isOpen: () => reach.isOpen(), drops: () => reach.drops(), refusal: () => reach.refusal(), close },
    },
  };
}

/** Where its log is, where that can be told before it answers. */
async function find(options: WatchAttachedOptions, machine: Machine): Promise<AttachedSubject | undefined> {
  const place = logPlaceOf(options);
  if ('kind' in place || 'port' in place) return undefined;
  const log = await findServerLog(machine, place);
  if (log.kind === 'none' && log.container === undefined) return undefined;
  return await openSubject(machine, log, await openServerLog(machine, log, options.engine), false);
}
