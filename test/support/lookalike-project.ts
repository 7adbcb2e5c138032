/** A project whose run is answered by a lookalike engine: prompts, a run file that attaches to it, and its journal. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { makeProject, type Project } from './cli.ts';
import { type JournalLine, readJournal } from './read-journal.ts';
import { promptStates, readShardLines } from './run-folder.ts';
import { type RunningProgram, spawnProgram } from './spawn-program.ts';

export interface LookalikeRequest {
  readonly prompts: number;
  readonly scenario?: object;
  readonly args?: readonly string[];
  /** Laid over the run file. */
  readonly run?: object;
  /** false: the run file names a port where nothing listens yet; `startLater` puts the engine there. */
  readonly started?: boolean;
}

export interface LookalikeProject extends Project {
  readonly runFolder: string;
  readonly port: number;
  startLater(): Promise<RunningProgram>;
  /** Rewrites the run file with these keys laid over it. */
  change(over: object): void;
  clearFaults(): Promise<void>;
  inFlight(): Promise<number>;
  journal(): JournalLine[];
}

export const promptRow = (at: number) => ({ prompt: `Question ${at}: what is ${at} and ${at}?` });

export async function lookalikeProject(request: LookalikeRequest): Promise<LookalikeProject> {
  const project = makeProject();
  const { prompts, scenario = {}, args = [] } = request;
  const scenarioPath = project.write('scenario.json', JSON.stringify(scenario));
  const journalPath = project.path('journal.jsonl');
  project.writeRows(
    'prompts.jsonl',
    Array.from({ length: prompts }, (_, at) => promptRow(at)),
  );
  const start = async (port: number) => {
    const engine = await spawnProgram({
      program: 'lookalike-engine.js',
      args: ['--scenario', scenarioPath, '--journal', journalPath, ...args],
      port,
    });
    onTestFinished(async () => void (await engine.stop()));
    return engine;
  };
  const port = request.started === false ? await freePort() : (await start(0)).port;
  const base = {
    run: 'r',
    model: 'lookalike',
    servers: [{ engine: 'vllm', attach: `http://127.0.0.1:${port}` }],
    sampling: { 'max-tokens': 64, seed: 7 },
    'in-flight': 4,
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
    ...request.run,
  };
  project.writeRun('run.yaml', base);
  const control = async (method: string, path: string) => {
    const reply = await fetch(`http://127.0.0.1:${port}/_lookalike/${path}`, { method });
    if (!reply.ok) throw new Error(`${method} ${path} was answered ${reply.status}`);
    return (await reply.json().catch(() => ({}))) as { inFlight?: number };
  };
  return {
    ...project,
    runFolder: project.path('runs/r'),
    port,
    startLater: () => start(port),
    change: (over) => void project.writeRun('run.yaml', { ...base, ...over }),
    clearFaults: async () => void (await control('DELETE', 'fault')),
    inFlight: async () => (await control('GET', 'stats')).inFlight ?? 0,
    journal: () => readJournal(journalPath),
  };
}

/** A port where nothing listens: taken for a moment, then given back. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Each prompt is done, once in the shards, and its ids (its text, where a version gives none) are what the engine says it sent. */
export function expectEachOnce(
  project: Pick<LookalikeProject, 'runFolder' | 'journal'>,
  prompts: number,
  partition = 'B1',
): void {
  expect(promptStates(project.runFolder)).toEqual({ done: prompts });
  const records = readShardLines(project.runFolder, partition);
  expect(new Set(records.map(({ id }) => id)).size).toBe(prompts);
  expect(records.length).toBe(prompts);
  const answered = project.journal().filter((line) => line.event === 'answered');
  const sent = new Set(answered.flatMap((line) => [line.outputIds?.sha256 ?? '', line.textSha256 ?? '']));
  for (const { turns } of records) {
    for (const { outputIds, text } of turns) {
      const given = outputIds.length === 0 ? text : JSON.stringify(outputIds);
      expect(sent).toContain(createHash('sha256').update(given).digest('hex'));
    }
  }
}
