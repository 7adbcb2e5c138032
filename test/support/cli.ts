/**
 * The real command line for journeys: `node dist/main.js …` as a process of its own, in a project folder of its own.
 *
 * Promises: it ends only what it started, by its process; a project folder is removed when its test passes, and kept with
 * its path printed when the test fails; a child that a test forgets is killed when the test ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface CliOptions {
  readonly cwd: string;
  /** Laid over the environment of the tests; undefined takes a variable out. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Flags of node itself, before the program. */
  readonly nodeArgs?: readonly string[];
  /** Told each whole line of stderr. */
  readonly onLine?: (line: string) => void;
}

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Milliseconds from start to end. */
  readonly tookMs: number;
  /** stdout as the one JSON document of `--json`; throws where it is not exactly one. */
  json(): JsonDocument;
}

export interface JsonDocument {
  readonly aerie: number;
  readonly command?: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the fields it knows to be there
  readonly data?: any;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly because: string;
    readonly remedy: string;
    readonly evidence?: readonly string[];
    readonly facts: Readonly<Record<string, unknown>>;
  };
}

export interface StartedCli {
  readonly pid: number;
  readonly child: ChildProcess;
  kill(signal: NodeJS.Signals): void;
  /** All of stderr so far. */
  stderr(): string;
  /** Resolves with the first line of stderr, past or to come, that matches; rejects when the program ends before. */
  line(pattern: RegExp): Promise<string>;
  readonly ended: Promise<CliResult>;
}

export function startAerie(args: readonly string[], options: CliOptions): StartedCli {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is not built: npx tsc -p tsconfig.build.json`);
  const startedMs = performance.now();
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), MAIN, ...args], {
    cwd: options.cwd,
    env: environment(options.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const waiting = new Set<(line: string) => void>();
  let stdout = '';
  let stderr = '';
  let open = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    const pieces = (open + text).split('\n');
    open = pieces.pop() ?? '';
    for (const line of pieces) {
      lines.push(line);
      options.onLine?.(line);
      for (const tell of waiting) tell(line);
    }
  });
  const ended = once(child, 'close').then(([code, signal]): CliResult => {
    return resultOf({ code: code as number | null, signal: signal as NodeJS.Signals | null, stdout, stderr }, startedMs);
  });
  onTestFinished(() => void (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')));
  return {
    pid: child.pid ?? 0,
    child,
    kill: (signal) => void child.kill(signal),
    stderr: () => stderr,
    line(pattern) {
      const before = lines.find((line) => pattern.test(line));
      if (before !== undefined) return Promise.resolve(before);
      return new Promise((resolve, reject) => {
        const tell = (line: string) => {
          if (!pattern.test(line)) return;
          waiting.delete(tell);
          resolve(line);
        };
        waiting.add(tell);
        void ended.then(({ code }) => reject(new Error(`ended with ${code} before a line matched ${pattern}:\n${stderr}`)));
      });
    },
    ended,
  };
}

export function aerie(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return startAerie(args, options).ended;
}

export function resultOf(ended: Pick<CliResult, 'code' | 'signal' | 'stdout' | 'stderr'>, startedMs: number): CliResult {
  return { ...ended, tookMs: performance.now() - startedMs, json: () => oneDocument(ended) };
}

/** The environment of a command: that of the tests, without colours, and what is laid over it. */
export function environment(over: CliOptions['env'] = {}): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1', ...over };
  delete env['FORCE_COLOR'];
  for (const [name, value] of Object.entries(over)) if (value === undefined) delete env[name];
  return env;
}

function oneDocument({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): JsonDocument {
  const lines = stdout.split('\n');
  if (lines.length !== 2 || lines[1] !== '')
    throw new Error(`stdout is not one line of JSON:\n${stdout}\nand stderr was:\n${stderr}`);
  return JSON.parse(stdout) as JsonDocument;
}

export interface Project {
  readonly folder: string;
  path(name: string): string;
  write(name: string, content: string | Uint8Array): string;
  /** Rows of JSON, one a line. */
  writeRows(name: string, rows: readonly unknown[]): string;
  /** A run file; JSON is YAML. */
  writeRun(name: string, run: object): string;
  read(name: string): string;
  aerie(args: readonly string[], options?: Partial<CliOptions>): Promise<CliResult>;
  start(args: readonly string[], options?: Partial<CliOptions>): StartedCli;
}

/** Left out: the folder ends with the test. A file whose tests share one gives its own way to end it. */
export function makeProject(whenOver: (remove: () => void, folder: string) => void = withTheTest): Project {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-journey-'));
  whenOver(() => rmSync(folder, { recursive: true, force: true }), folder);
  const path = (name: string) => join(folder, name);
  const write = (name: string, content: string | Uint8Array) => {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), content);
    return path(name);
  };
  return {
    folder,
    path,
    write,
    writeRows: (name, rows) => write(name, rows.map((row) => `${JSON.stringify(row)}\n`).join('')),
    writeRun: (name, run) => write(name, `${JSON.stringify(run, undefined, 2)}\n`),
    read: (name) => readFileSync(path(name), 'utf8'),
    aerie: (args, options = {}) => aerie(args, { cwd: folder, ...options }),
    start: (args, options = {}) => startAerie(args, { cwd: folder, ...options }),
  };
}

function withTheTest(remove: () => void, folder: string): void {
  onTestFinished(({ task }) => {
    if (task.result?.state === 'fail') process.stderr.write(`kept for a look: ${folder}\n`);
    else remove();
  });
}
