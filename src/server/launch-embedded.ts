/**
 * Starts the embedded engine as a child process. Its stdin is a lifeline: when Aerie dies, however it dies, the engine
 * reads the end of its stdin and exits, so no orphan holds memory. The program is started by path, never imported.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Host } from '../host/host.ts';
import type { ProcessExit } from '../host/processes.ts';
import type { LaunchedProcess } from './launched-process.ts';

export interface EmbeddedLaunch {
  readonly server: string;
  readonly modelPath: string;
  /** Name shown in records. */
  readonly model: string;
  readonly revision: string;
  readonly flags: Readonly<Record<string, string | number | boolean>>;
  readonly port: number;
  /** Folder for its log and its port file. */
  readonly logFolder: string;
}

const PROGRAM = fileURLToPath(new URL('../programs/embedded-engine.js', import.meta.url));
/** SIGTERM to SIGKILL: the embedded engine ends within a second. */
const STOP_GRACE_MS = 5_000;
/** The program writes its port within a second; looking ten times a second costs nothing. */
const LOOK_EVERY_MS = 100;

/** The package is an optional one. Looked for, not loaded: loading it takes a second. */
export function isEngineInstalled(): boolean {
  const places = createRequire(import.meta.url).resolve.paths('node-llama-cpp') ?? [];
  return places.some((place) => existsSync(join(place, 'node-llama-cpp', 'package.json')));
}

/** The command line after `node`, in the engine's own spelling. */
export function renderEmbeddedArgs(launch: EmbeddedLaunch, portFile: string): string[] {
  const flags = Object.entries(launch.flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return [
    ...['--model', launch.modelPath, '--served-model-name', launch.model, '--revision', launch.revision],
    ...['--host', '127.0.0.1', '--port', String(launch.port), '--port-file', portFile, '--lifeline'],
    ...flags,
  ];
}

export async function launchEmbedded(launch: EmbeddedLaunch, host: Host): Promise<LaunchedProcess> {
  await mkdir(launch.logFolder, { recursive: true });
  const logPath = join(launch.logFolder, `${launch.server}.log`);
  const portFile = join(launch.logFolder, `${launch.server}.port`);
  await rm(portFile, { force: true });
  const started = await host.startProcess({
    file: process.execPath,
    args: [PROGRAM, ...renderEmbeddedArgs(launch, portFile)],
    env: {},
    logPath,
    workFolder: dirname(launch.modelPath),
  });
  let ended = false;
  void started.exited.then(() => {
    ended = true;
  });
  return {
    pid: started.pid,
    logPath,
    exited: started.exited.then(describeExit),
    async leave() {
      await started.stop(STOP_GRACE_MS);
      return 'stopped';
    },
    async listening(signal) {
      while (!ended && !signal.aborted) {
        const port = Number(await readFile(portFile, 'utf8').catch(() => ''));
        if (port > 0) return `http://127.0.0.1:${port}`;
        await host.clock.sleep(LOOK_EVERY_MS, signal);
      }
      return undefined;
    },
  };
}

export function describeExit({ code, signal }: ProcessExit): string {
  return signal === undefined ? `exit code ${code}` : `signal ${signal}`;
}

/** The last lines of a server's log, as evidence. The whole log stays where it is. */
export async function lastLogLines(logPath: string, lines: number): Promise<string[]> {
  const text = await readFile(logPath, 'utf8').catch(() => '');
  const all = text.split('\n').filter((line) => line.trim() !== '');
  const from = Math.max(0, all.length - lines);
  return all.slice(from).map((line, at) => `${logPath}:${from + at + 1}  ${line.slice(0, 400)}`);
}
