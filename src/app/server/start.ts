/**
 * `aerie server start`: launches the servers of a run file, or finds them again, and returns when each is ready and verified.
 * They go on when the command has ended; `aerie run` uses them, `aerie server stop` ends them.
 */

import { join } from 'node:path';
import { AerieError } from '../../base/errors.ts';
import type { Event, Happening } from '../../base/events.ts';
import { openRunLog } from '../../observe/run-log.ts';
import type { RunSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { findRun } from '../find-run.ts';
import { policyInForce } from '../policy-in-force.ts';
import { openRunFolder } from '../run-folder.ts';
import { addressThere } from '../servers/address-there.ts';
import { machineOf } from '../servers/machine-of.ts';
import { openServers } from '../servers/open-servers.ts';
import { planLaunches } from '../servers/plan-launches.ts';
import { refuseBeforeStart } from '../servers/refuse-before-start.ts';
import { chooseServers, type ServerInput } from './choose-servers.ts';

export interface ServerStartInput extends ServerInput {
  /** Pid of a process that holds GPU memory and may be ended for a launch. */
  readonly killHolder?: number;
}

export interface ServerStartReport {
  readonly run: string;
  readonly servers: readonly StartedServer[];
}

export interface StartedServer {
  readonly name: string;
  readonly pid: number;
  readonly baseUrl: string;
  /** Its address there, where it is on another machine: `baseUrl` ends with this command. '' = on this one. */
  readonly at: string;
  readonly log: string;
  readonly poolTokens: number;
  readonly kvCacheDtype: string;
  readonly contextTokens: number;
  readonly maxRunningRequests: number;
}

export async function runServerStart(input: ServerStartInput, context: OperationContext): Promise<ServerStartReport> {
  const found = (await findRun(input.run)).run;
  const run: RunSpec = { ...found, servers: chooseServers(found, input) };
  refuseBeforeStart(run, context.host.env);
  const bases = await planLaunches(run, context);
  const { ledger, events, close } = await openRunFolder(found, context.host);
  const log = openRunLog(join(run.folder, 'logs', 'aerie.log'));
  const onEvents = (all: readonly Event[]) => {
    for (const event of all) {
      log.write(event);
      context.onEvent(event);
    }
  };
  const stopping = new AbortController();
  const emit = (happening: Happening) => onEvents(ledger.emit([happening]));
  try {
    onEvents(events);
    const opened = await openServers({
      ...{ run, ledger, context, emit, isAmending: false, bases, stopping: stopping.signal, onReady: () => undefined },
      policy: () => policyInForce(run, ledger),
      ...(input.killHolder === undefined ? {} : { killHolder: input.killHolder }),
    });
    try {
      const { ready, failed } = await opened.fleet.whenSettled(AbortSignal.any([context.drain, context.abort]));
      const [failure] = failed;
      if (failure !== undefined) throw failure;
      if (ready.length < run.servers.length) throw stoppedWaiting(input.run);
      const servers = ready.map(({ server, facts }): StartedServer => {
        const engine = opened.launchers.get(server)?.engine;
        const { poolTokens, kvCacheDtype, contextTokens, sequences } = facts;
        const spec = run.servers.find(({ name }) => name === server);
        const at =
          spec === undefined || engine === undefined
            ? ''
            : addressThere(machineOf(spec, context, run.patienceMs), engine.record.port);
        return {
          at,
          ...{ name: server, pid: engine?.pid ?? 0, baseUrl: engine?.baseUrl ?? '', log: engine?.logPath ?? '' },
          ...{ poolTokens, kvCacheDtype, contextTokens, maxRunningRequests: sequences },
        };
      });
      return { run: run.name, servers };
    } finally {
      stopping.abort();
      await opened.fleet.stop();
    }
  } finally {
    log.close();
    close();
  }
}

function stoppedWaiting(argument: string): AerieError {
  return new AerieError('run.interrupted', 'Stopped waiting by Ctrl-C. What was started goes on loading.', {
    remedy: `Wait for it again:  aerie server start ${argument}\nEnd it:              aerie server stop ${argument}`,
  });
}
