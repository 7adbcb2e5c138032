/**
 * The embedded engine: a small inference server on llama.cpp, for machines with no GPU.
 * Started by path: `node dist/programs/embedded-engine.js --model FILE.gguf …` (flags: `embedded/flags.ts`).
 *
 * It is  listening (503) → ready (200).  Exit codes: 0 stopped (SIGTERM, SIGINT, or stdin closed with --lifeline),
 * 2 wrong flags, 3 no package, no binary or no model file, 4 the model cannot be loaded or the port not be had.
 */
import { renameSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { serve } from '@hono/node-server';
import { systemClock } from '../host/node-host.ts';
import { watchActivity } from './embedded/activity.ts';
import { FlagError, parseFlags, type EngineFlags } from './embedded/flags.ts';
import { createHttpApp } from './embedded/http-app.ts';
import { LoadError, type LoadedModel, loadModel, PACKAGE_MISSING } from './embedded/model.ts';

function main(): void {
  const flags = readFlags();
  // No clean-up on the way out: the kernel takes the memory back, and a step under way would hold a tidy exit for seconds.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop(`stopping: ${signal}`));
  if (flags.lifeline) {
    process.stdin.on('error', () => stop('stopping: stdin failed'));
    process.stdin.on('close', () => stop('stopping: stdin closed'));
    process.stdin.resume();
  }
  refuseMissingPackage();

  let model: LoadedModel | undefined;
  const app = createHttpApp({ model: () => model, now: systemClock.now, log });
  const server = serve({ fetch: app.fetch, hostname: flags.host, port: flags.port }, (address) => {
    tellPort(flags, address);
    const startedAt = systemClock.elapsed();
    loadModel(flags, log).then((loaded) => {
      model = loaded;
      watchActivity(loaded, log);
      log(
        `ready after ${Math.round(systemClock.elapsed() - startedAt)} ms: ${flags.servedModelName}, weights ${loaded.weights}, ` +
          `${flags.sequences} × ${flags.contextTokens} tokens of ${flags.kvType} KV, ${flags.threads} threads`,
      );
    }, fail);
  });
  server.on('error', (error) => fail(new LoadError(4, `Port ${flags.port} on ${flags.host} cannot be had: ${error.message}`)));
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

function stop(line: string): never {
  log(line);
  process.exit(0);
}

function fail(thrown: unknown): never {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  process.stderr.write(`${message}\n`);
  process.exit(thrown instanceof LoadError ? thrown.exitCode : 4);
}

main();
