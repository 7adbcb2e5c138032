/**
 * Puts the fake docker on a PATH, with images of its own. What asks it asks a program, as it would the real one; what it is
 * not is said in `fake-docker.mjs`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quoteShell } from '../../src/base/quote-shell.ts';

/** What stands in for an image: a command line and an environment. A container has these, what `docker run` says, and nothing else. */
export interface FakeImage {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly workFolder?: string;
  readonly stopSignal?: string;
}

export interface FakeDocker {
  /** To be given to Aerie. */
  readonly env: Readonly<Record<'PATH', string>>;
  readonly binFolder: string;
  readonly stateFolder: string;
  /** Takes an image away from the machine; a registry has it, and each layer takes so long to come, in milliseconds. */
  fetchFirst(image: string, layers: readonly number[]): void;
  /** Whether the client reaches its daemon. */
  setDaemon(state: 'up' | 'down' | 'denied'): void;
  /** As somebody else would call it; waits for its end. */
  run(...options: string[]): Promise<void>;
  /** The words of every call so far. */
  calls(): string[][];
  /** Pids of the first processes of containers that run. */
  pids(): number[];
  /** Ends every container as the kernel does that has no memory left for it: SIGKILL, and docker knows why. */
  runOutOfMemory(): void;
  /** Ends every container, by pid; for the end of a test. */
  endAll(): void;
}

const PROGRAM = fileURLToPath(new URL('./fake-docker.mjs', import.meta.url));

export function installFakeDocker(
  folder: string,
  images: Readonly<Record<string, FakeImage>>,
  path = process.env['PATH'] ?? '',
): FakeDocker {
  const [stateFolder, binFolder] = [join(folder, 'docker'), join(folder, 'docker-bin')];
  const containers = join(stateFolder, 'containers');
  for (const made of [containers, binFolder]) mkdirSync(made, { recursive: true });
  const written = Object.entries(images).map(([name, { env = {}, ...image }]) => [
    name,
    { ...image, path, env: Object.entries(env).map(([key, value]) => `${key}=${value}`) },
  ]);
  writeFileSync(join(stateFolder, 'images.json'), JSON.stringify(Object.fromEntries(written), undefined, 2));
  const shim = join(binFolder, 'docker');
  const [node, program, state] = [process.execPath, PROGRAM, stateFolder].map(quoteShell);
  writeFileSync(shim, `#!/bin/sh\nAERIE_FAKE_DOCKER=${state} exec ${node} ${program} "$@"\n`);
  chmodSync(shim, 0o755);
  const pids = () => readdirSync(containers).flatMap((id) => pidOf(join(containers, id)));
  return {
    ...{ env: { PATH: `${binFolder}${delimiter}${path}` }, binFolder, stateFolder, pids },
    async run(...options) {
      const child = spawn(shim, ['run', ...options], { stdio: 'ignore' });
      await once(child, 'exit');
    },
    fetchFirst(name, layers) {
      const { [name]: image, ...others } = JSON.parse(readFileSync(join(stateFolder, 'images.json'), 'utf8')) as Record<
        string,
        object
      >;
      writeFileSync(join(stateFolder, 'images.json'), JSON.stringify(others));
      writeFileSync(join(stateFolder, 'registry.json'), JSON.stringify({ [name]: { layers, image } }));
    },
    setDaemon: (daemon) => writeFileSync(join(stateFolder, 'daemon'), daemon),
    calls: () => (existsSync(join(stateFolder, 'calls.jsonl')) ? readCalls(join(stateFolder, 'calls.jsonl')) : []),
    runOutOfMemory() {
      for (const id of readdirSync(containers)) {
        writeFileSync(join(containers, id, 'out-of-memory.json'), '{}');
        for (const pid of pidOf(join(containers, id))) kill(pid);
      }
    },
    endAll() {
      const running = readdirSync(containers).filter((id) => pidOf(join(containers, id)).length > 0);
      for (const pid of pids()) kill(pid);
      // What stands above a container writes how it ended: nothing is left that still writes.
      const untilMs = performance.now() + 10_000;
      const isOver = (id: string) => existsSync(join(stateFolder, `exit-${id}.json`));
      while (!running.every(isOver) && performance.now() < untilMs) Atomics.wait(CLOCK, 0, 0, 20);
    },
  };
}

const CLOCK = new Int32Array(new SharedArrayBuffer(4));

function pidOf(container: string): number[] {
  if (!existsSync(join(container, 'started.json')) || existsSync(join(container, 'ended.json'))) return [];
  return [(JSON.parse(readFileSync(join(container, 'started.json'), 'utf8')) as { pid: number }).pid];
}

function readCalls(path: string): string[][] {
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as string[]);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended meanwhile
  }
}
