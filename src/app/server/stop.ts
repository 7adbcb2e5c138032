/** `aerie server stop`: ends the launches of a run file, whoever watched them, and waits until the memory of the GPUs is free. */
import { join } from 'node:path';
import type { Event, Happening } from '../../base/events.ts';
import { openRunLog } from '../../observe/run-log.ts';
import type { OperationContext } from '../context.ts';
import { findRun } from '../find-run.ts';
import { policyInForce } from '../policy-in-force.ts';
import { openRunFolder } from '../run-folder.ts';
import { openIdleLauncher } from '../servers/idle-launcher.ts';
import { chooseServers, type ServerInput } from './choose-servers.ts';

export interface ServerStopReport {
  readonly run: string;
  readonly servers: readonly StoppedServer[];
  /** Every launch is gone and the GPUs are at their baseline. */
  readonly isClean: boolean;
}

export interface StoppedServer {
  readonly name: string;
  /** 0 = none was running. */
  readonly pid: number;
  /** What was done and seen, one sentence each. */
  readonly says: readonly string[];
  readonly isGone: boolean;
  readonly isMemoryFree: boolean;
}

export async function runServerStop(input: ServerInput, context: OperationContext): Promise<ServerStopReport> {
  const { run } = await findRun(input.run);
  const servers = chooseServers(run, input);
  const { ledger, close } = await openRunFolder(run, context.host);
  const log = openRunLog(join(run.folder, 'logs', 'aerie.log'));
  const emit = (happening: Happening) => {
    for (const event of ledger.emit([happening]) satisfies readonly Event[]) {
      log.write(event);
      context.onEvent(event);
    }
  };
  try {
    const stopped: StoppedServer[] = [];
    for (const server of servers) {
      const launcher = await openIdleLauncher({ run, server, context, emit, policy: () => policyInForce(run, ledger) });
      stopped.push({ name: server.name, ...(await launcher.stop()) });
    }
    return { run: run.name, servers: stopped, isClean: stopped.every(({ isGone, isMemoryFree }) => isGone && isMemoryFree) };
  } finally {
    log.close();
    close();
  }
}
