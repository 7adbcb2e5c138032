/** Puts the fake srun, squeue and scancel into a folder that is on a PATH; what they are not is said in `fake-slurm.mjs`. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quoteShell } from '../../src/base/quote-shell.ts';

export interface FakeJob {
  readonly id: number;
  /** As srun was told. */
  readonly options: Readonly<Record<string, string | boolean>>;
  /** Of its first process; undefined: it waits. */
  readonly pid: number | undefined;
  readonly isOver: boolean;
}

export interface FakeSlurm {
  jobs(): FakeJob[];
  /** While it is, jobs wait in the queue. */
  setFull(isFull: boolean): void;
  /** The name that the node has. `isApart`: a machine of its own, where 0.0.0.0 is this name and not the loopback of the machine of srun. */
  setNode(name: string, isApart?: boolean): void;
  /** Ends every job that lives as Slurm does, with its words in the log: the time was over, somebody else needed the node, or a person said so. */
  cancelAll(because: 'TIME LIMIT' | 'PREEMPTION' | ''): void;
  /** Whether the controller answers. */
  setController(state: 'up' | 'down'): void;
  /** Ends every task, for the end of a test. */
  endAll(): void;
}

const PROGRAM = fileURLToPath(new URL('./fake-slurm.mjs', import.meta.url));

export function installFakeSlurm(folder: string, binFolder: string): FakeSlurm {
  const state = join(folder, 'slurm');
  mkdirSync(join(state, 'jobs'), { recursive: true });
  for (const name of ['srun', 'squeue', 'scancel']) {
    const [node, program, where] = [process.execPath, PROGRAM, state].map(quoteShell);
    writeFileSync(join(binFolder, name), `#!/bin/sh\nAERIE_FAKE_SLURM=${where} exec ${node} ${program} ${name} "$@"\n`);
    chmodSync(join(binFolder, name), 0o755);
  }
  const read = (id: string, name: string): Readonly<Record<string, unknown>> | undefined => {
    const path = join(state, 'jobs', id, name);
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) : undefined;
  };
  const jobs = () =>
    readdirSync(join(state, 'jobs')).map((id) => ({
      ...{ id: Number(id), options: (read(id, 'asked.json')?.['options'] ?? {}) as FakeJob['options'] },
      ...{ pid: read(id, 'task.json')?.['pid'] as number | undefined, isOver: read(id, 'end.json') !== undefined },
    }));
  return {
    jobs,
    setFull: (isFull) => (isFull ? writeFileSync(join(state, 'full'), '') : rmSync(join(state, 'full'), { force: true })),
    setNode(name, isApart = false) {
      writeFileSync(join(state, 'node'), name);
      writeFileSync(join(state, 'apart'), isApart ? name : '');
    },
    cancelAll(because) {
      for (const { id, isOver } of jobs())
        if (!isOver) writeFileSync(join(state, 'jobs', String(id), 'cancel.json'), JSON.stringify({ because }));
    },
    setController: (is) => writeFileSync(join(state, 'controller'), is),
    endAll() {
      rmSync(join(state, 'full'), { force: true });
      for (const { pid, isOver } of jobs()) if (pid !== undefined && !isOver) killGroup(pid);
    },
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended meanwhile
  }
}
