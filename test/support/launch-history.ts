/** What happened to the servers of a launched project, read without Aerie's own code: events, living engines, and whether every answer is there once. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';
import { until } from './child-processes.ts';
import type { LaunchProject } from './launch-project.ts';
import { promptStates, query, readShardLines } from './run-folder.ts';

export interface ToldEvent {
  readonly kind: string;
  readonly subject: string;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}

/** All of the ledger's, oldest first; with `kind`, those alone. */
export function eventsOf({ runFolder }: Pick<LaunchProject, 'runFolder'>, kind?: string): ToldEvent[] {
  const rows = query(runFolder, 'SELECT kind, subject, facts FROM events ORDER BY n');
  const all = rows.map((row) => ({ ...row, facts: JSON.parse(String(row['facts'])) }) as unknown as ToldEvent);
  return kind === undefined ? all : all.filter((event) => event.kind === kind);
}

/** Pids of this project's engines: the front end of each, not its ranks and not the shell that waits for it. */
export function enginesOf({ folder }: Pick<LaunchProject, 'folder'>): number[] {
  const found = processesOf((name) => {
    const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
    // A preflight asks the engine for its help, which starts nothing.
    const isAskedForHelp = words.some((word) => word.startsWith('--help'));
    return words[0]?.endsWith('node') === true && words.includes(`${folder}/scenario.json`) && !isAskedForHelp;
  });
  // A child of an engine has its command line until it is the program that it was made for.
  return found.filter((pid) => !found.includes(parentOf(pid)));
}

/** Whatever lives with the lookalike cards of this project in its environment. */
export function livingOf({ folder }: Pick<LaunchProject, 'folder'>): number[] {
  const cards = `AERIE_LOOKALIKE_GPUS=${folder}/gpus\0`;
  return processesOf((name) => readFileSync(`/proc/${name}/environ`, 'utf8').includes(cards));
}

/** Behind ssh the script of a look of Aerie's, which has them in its environment too, may end a moment after Aerie. */
export async function expectNothingLives(project: LaunchProject): Promise<void> {
  if (project.place.where === 'ssh') await until(() => livingOf(project).length === 0, 5_000);
  expect(livingOf(project)).toEqual([]);
}

/** 0: it has ended meanwhile. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return 0;
  }
}

function processesOf(isOne: (name: string) => boolean): number[] {
  const names = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return names.map(Number).filter((pid) => {
    try {
      return pid !== process.pid && isOne(String(pid)) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
      return false; // it has ended between two looks, or is another user's
    }
  });
}

/** With the test ends whatever of the project is left, also what nothing of Aerie's may end. */
export function endsWithTheTest(project: Pick<LaunchProject, 'folder'>): void {
  onTestFinished(() => {
    for (const pid of livingOf(project)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // it has ended by itself
      }
    }
  });
}

/** Looks again and again while `work` goes on: never two engines. Returns what `work` returns. */
export async function neverTwoEngines<T>(project: Pick<LaunchProject, 'folder'>, work: Promise<T>): Promise<T> {
  let most: readonly number[] = [];
  const look = setInterval(() => {
    const now = enginesOf(project);
    if (now.length > most.length) most = now;
  }, 100);
  try {
    return await work;
  } finally {
    clearInterval(look);
    expect(most.length).toBeLessThanOrEqual(1);
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Every prompt is done, has one record in the shards, and its text is what the engine said to exactly these messages. */
export function expectAnsweredOnce(project: LaunchProject, prompts: Readonly<Record<string, number>>): void {
  const total = Object.values(prompts).reduce((sum, count) => sum + count, 0);
  expect(promptStates(project.runFolder)).toEqual({ done: total });
  const said = new Set(
    project.journal().map((line) => (line.event === 'answered' && line.status === 200 ? `${line.hash} ${line.textSha256}` : '')),
  );
  for (const [partition, count] of Object.entries(prompts)) {
    const records = readShardLines(project.runFolder, partition);
    expect(records.length).toBe(count);
    expect(new Set(records.map(({ id }) => id)).size).toBe(count);
    for (const { messages, turns } of records) {
      expect(turns.length).toBe(1);
      const asked = messages.filter(({ role }) => role !== 'assistant').map(({ role, content }) => ({ role, content }));
      expect(said).toContain(`${sha256(JSON.stringify(asked))} ${sha256(turns[0]?.text ?? '')}`);
    }
  }
}

/** Adds a fault to the engine that answers now, as `docs/lookalike.md` has them. */
export async function askLookalike({ port }: Pick<LaunchProject, 'port'>, fault: object): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}/_lookalike/fault`, { method: 'POST', body: JSON.stringify(fault) });
  if (!reply.ok) throw new Error(`the lookalike answered ${reply.status}: ${await reply.text()}`);
}
