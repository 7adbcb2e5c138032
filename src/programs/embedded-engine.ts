/**
 * The embedded engine: a small inference server on llama.cpp, for machines with no GPU.
 * Started by path: `node dist/programs/embedded-engine.js --model FILE.gguf …` (flags: `embedded/flags.ts`).
 *
 * It is  listening (503) → ready (200).  Exit codes: 0 stopped (SIGTERM, SIGINT, or stdin closed with --lifeline),
 * 2 wrong flags, 3 no package, no binary or no model file, 4 the model cannot be loaded or the port not be had. It is gone
 * within a second of being told to stop; where a step of a large model takes longer, it kills itself (signal 9).
 */
import { renameSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { serve } from '@hono/node-server';
import { systemClock } from '../host/node-host.ts';
import { watchActivity } from './embedded/activity.ts';
import { type EngineFlags, FlagError, parseFlags } from './embedded/flags.ts';
import { createHttpApp } from './embedded/http-app.ts';
import { LoadError, type LoadedModel, loadModel, PACKAGE_MISSING } from './embedded/model.ts';

/** Node waits for a step under way before it exits, so the work is called off first; 800 ms of the second are for that. */
const STOP_MS = 800;

const stopping = new AbortController();
let model: LoadedModel | undefined;
let isLoading = false;

function main(): void {
  const flags = readFlags();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  if (flags.lifeline) {
    process.stdin.on('error', () => void stop('stdin failed'));
    process.stdin.on('close', () => void stop('stdin closed'));
    process.stdin.resume();
  }
  refuseMissingPackage();
  const app = createHttpApp({ model: () => model, now: systemClock.now, log });
  const server = serve({ fetch: app.fetch, hostname: flags.host, port: flags.port }, (address) => {
    tellPort(flags, address);
    load(flags).catch(fail);
  });
  server.on('error', (error) => fail(new LoadError(4, `Port ${flags.port} on ${flags.host} cannot be had: ${error.message}`)));
}

async function load(flags: EngineFlags): Promise<void> {
  const startedAt = systemClock.elapsed();
  isLoading = true;
  try {
    model = await loadModel(flags, log, stopping.signal);
  } finally {
    isLoading = false;
  }
  watchActivity(model, log);
  log(
    `ready after ${Math.round(systemClock.elapsed() - startedAt)} ms: ${flags.servedModelName}, weights ${model.weights}, ` +
      `${flags.sequences} × ${flags.contextTokens} tokens of ${flags.kvType} KV, ${flags.threads} threads`,
  );
}

async function stop(because: string): Promise<void> {
  if (stopping.signal.aborted) return;
  log(`stopping: ${because}`);
  stopping.abort(new Error('the engine is being stopped'));
  model?.refuseSteps();
  const deadline = systemClock.elapsed() + STOP_MS;
  const isWorking = () => isLoading || (model?.pool.running ?? 0) > 0;
  while (isWorking() && systemClock.elapsed() < deadline) await systemClock.sleep(10);
  if (isWorking()) process.kill(process.pid, 'SIGKILL');
  process.exit(0);
}

function readFlags(): EngineFlags {
  try {
    return parseFlags(process.argv.slice(2), availableParallelism());
  } catch (thrown) {
    if (!(thrown instanceof FlagError)) throw thrown;
    process.stderr.write(`${thrown.message}\n`);
    process.exit(2);
  }
}

/** Said before anything listens, and without loading the package, which takes a second. */
function refuseMissingPackage(): void {
  try {
    import.meta.resolve('node-llama-cpp');
  } catch {
    fail(new LoadError(3, PACKAGE_MISSING));
  }
}

/** Atomically, so that whoever waits for the file never reads half a number. */
function tellPort(flags: EngineFlags, address: AddressInfo): void {
  log(`listening on http://${flags.host}:${address.port}, loading ${flags.modelPath}`);
  if (flags.portFile === '') return;
  writeFileSync(`${flags.portFile}.new`, `${address.port}\n`);
  renameSync(`${flags.portFile}.new`, flags.portFile);
}

function log(line: string): void {
  process.stdout.write(`${new Date(systemClock.now()).toISOString()} ${line}\n`);
}

function fail(thrown: unknown): void {
  if (stopping.signal.aborted) return; // what was called off is no failure
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  process.stderr.write(`${message.replace(/\s+/g, ' ')}\n`); // one line, whatever it quotes
  process.exit(thrown instanceof LoadError ? thrown.exitCode : 4);
}

main();
