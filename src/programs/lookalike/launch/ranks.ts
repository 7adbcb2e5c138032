/**
 * The processes of a launch beside its main one: one for each rank, which do nothing, cost nothing and hold the GPU memory.
 *
 * Promises: they end with the main process, however it ends (their stdin is a pipe that closes with it), unless the scenario
 * leaves them; each holds memory under its own pid, so what is left of a killed launch is found as on a real machine.
 */
import { startTitled, type TitledProcess } from '../../../host/title-process.ts';
import { GPUS_VARIABLE, holderKeyOf, readGpus, readHolds, writeHold } from '../gpu-state.ts';
import type { LaunchScenario } from './machine-scenario.ts';

/** More ranks than an eight-GPU machine has are not started: they would add nothing that can be seen. */
const MOST_PROCESSES = 8;

export interface Ranks {
  /** By rank; later ranks share the last process. */
  readonly pids: readonly number[];
  /** From now on each rank holds so much of its GPU, GiB. */
  hold(GiB: number): void;
  /** SIGKILL to all of them, unless the scenario leaves them. */
  kill(): void;
  /** They end as if somebody else had killed them, and are found dead. */
  lose(): void;
}

export interface RanksRequest {
  readonly titles: readonly string[];
  readonly scenario: Pick<LaunchScenario, 'leavesRanks' | 'ignoresSigterm' | 'memoryStaysMs'>;
  readonly gpus: Gpus;
  /** A rank has ended that nobody here told to. */
  onDeath(rank: number, pid: number, how: number | NodeJS.Signals): void;
}

export function startRanks({ titles, scenario, gpus, onDeath }: RanksRequest): Ranks {
  let isEnding = false;
  const children = titles.slice(0, MOST_PROCESSES).map((title, rank) => {
    const child = startRank(title, scenario);
    child.onExit((how) => {
      if (!isEnding) onDeath(rank, child.pid ?? 0, how);
    });
    return child;
  });
  const stays = scenario.memoryStaysMs > 0 ? { keepsAfterDeath: scenario.memoryStaysMs } : {};
  return {
    pids: children.map(({ pid }) => pid ?? 0),
    hold(GiB) {
      if (gpus.folder === '') return;
      for (const [rank, { pid }] of children.entries()) {
        if (pid === undefined) continue;
        const hold = { gpus: { [String(gpus.indexOf(rank))]: Math.round(GiB * 1024) }, name: titles[rank] ?? '', ...stays };
        writeHold(gpus.folder, holderKeyOf(pid), hold);
      }
    },
    kill() {
      isEnding = true;
      if (!scenario.leavesRanks) for (const child of children) child.kill('SIGKILL');
    },
    lose() {
      for (const child of children) child.kill('SIGKILL');
    },
  };
}

/**
 * `cat` of a pipe that nobody writes to ends when the pipe's other end does; `sleep infinity` does not care. Both carry the title
 * of a real rank as their own name. A rank that ignores SIGTERM needs a shell that ignores it first.
 */
function startRank(title: string, { leavesRanks, ignoresSigterm }: RanksRequest['scenario']): TitledProcess {
  const words = leavesRanks ? ['sleep', 'infinity'] : ['cat'];
  const [file = '', ...args] = ignoresSigterm ? ['bash', '-c', `trap '' TERM; exec -a "$0" ${words.join(' ')}`, title] : words;
  return startTitled({ file, args, title, endsWithUs: !leavesRanks });
}

/** The lookalike cards of this environment, as far as this launch sees them. */
export interface Gpus {
  /** '' = there are none. */
  readonly folder: string;
  readonly count: number;
  indexOf(rank: number): number;
  /** GiB that processes of other launches hold of the GPU of a rank. */
  heldByOthers(rank: number, own: readonly number[]): number;
}

export function findGpus(env: Readonly<Record<string, string | undefined>>, first: number): Gpus {
  const folder = env[GPUS_VARIABLE] ?? '';
  const visible = (env['CUDA_VISIBLE_DEVICES'] ?? '').split(',').filter((one) => /^\d+$/.test(one));
  const all = folder === '' ? 0 : readGpus(folder).length;
  const indexOf = (rank: number) => Number(visible[rank + first] ?? rank + first);
  return {
    folder,
    count: visible.length > 0 ? Math.min(visible.length, all) : all,
    indexOf,
    heldByOthers(rank, own) {
      if (folder === '') return 0;
      const held = readHolds(folder).filter(({ pid }) => !own.includes(pid));
      return held.reduce((sum, { gpus }) => sum + (gpus[String(indexOf(rank))] ?? 0), 0) / 1024;
    },
  };
}
