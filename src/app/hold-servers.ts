/**
 * Two Aeries must not launch a run's servers at once. Whoever launches them without working on the run (a preview) takes the run
 * for that time; where a worker has it, only servers that run are asked, as they are, and none is started or stopped.
 */
import { hostname } from 'node:os';
import { AerieError } from '../base/errors.ts';
import { holdRun } from '../ledger/sqlite/worker-lock.ts';
import { ensureFolder } from '../shard/durable-folder.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { livingLaunches } from './launch-history.ts';
import { refuseNetworkDisk } from './refuse-network-disk.ts';
import { isLaunched } from './server/choose-servers.ts';

export interface HeldServers {
  /** The run with the servers that may be used. */
  readonly run: RunSpec;
  release(): void;
}

/** Throws `ledger.held-elsewhere` where a worker has the run and none of its launched servers runs. */
export async function holdServers(run: RunSpec, context: OperationContext): Promise<HeldServers> {
  if (!run.servers.some(isLaunched)) return { run, release: () => undefined };
  const { host, onNote } = context;
  await refuseNetworkDisk(run.folder);
  await ensureFolder(run.folder);
  try {
    const held = holdRun(run.folder, { pid: host.pid, host: hostname(), startedAt: host.clock.now() });
    return { run, release: () => held.release() };
  } catch (thrown) {
    if (!(thrown instanceof AerieError) || thrown.code !== 'ledger.held-elsewhere') throw thrown;
    const living = (await livingLaunches(run, context)).filter(({ readyAt, unseen }) => readyAt > 0 && unseen === '');
    const servers = run.servers.flatMap((server) => {
      if (!isLaunched(server)) return [server];
      const launch = living.find((one) => one.server === server.name);
      if (launch === undefined) return [];
      const { port } = launch;
      return [{ ...server, attach: { kind: 'port', written: `port ${port}`, port } as const, flags: {}, port: 0, env: {} }];
    });
    if (servers.length === 0) throw thrown;
    onNote(
      `${thrown.message} Its running servers are asked as they are (${servers.map(({ name }) => name).join(', ')}), and none is launched.`,
    );
    return { run: { ...run, servers }, release: () => undefined };
  }
}
