/**
 * The lookalike engine: answers like vLLM and SGLang over HTTP without a model, with latencies and faults on cue.
 * It is an engine's surface and nothing more; what it says about speed or quality is what its scenario says.
 *
 *   node dist/programs/lookalike-engine.js --port 0 --port-file FILE …       (all flags: docs/lookalike.md)
 *
 * Promise: once the port file is there, requests are answered. Exit 0: told to end (SIGTERM, SIGINT, or stdin closed under
 * `--lifeline`). Exit 2: a flag or the scenario is wrong. Exit 4: the address or the journal cannot be had, or the journal failed.
 */
import { randomBytes } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { AerieError } from '../base/errors.ts';
import { startClock } from './lookalike/clock.ts';
import { openFaultTable } from './lookalike/faults.ts';
import { openJournal } from './lookalike/journal.ts';
import { runAsEngine } from './lookalike/launch/as-engine.ts';
import { splitWords } from './lookalike/launch/words.ts';
import { readScenario } from './lookalike/scenario.ts';
import type { Lookalike } from './lookalike/serve-generation.ts';
import { listen } from './lookalike/server.ts';
import { parseSettings, type Settings } from './lookalike/settings.ts';

function assemble(settings: Settings): Lookalike {
  const scenario = readScenario(settings.scenario);
  const clock = startClock(settings.clockRate);
  const life = randomBytes(4).toString('hex'); // 8 hex digits: enough to tell the lives in one journal apart
  return {
    settings,
    scenario,
    clock,
    life,
    journal: openJournal(settings.journal, life, clock.now),
    faults: openFaultTable(scenario.faults, clock, die),
    stats: { received: 0, answered: 0, aborted: 0, inFlight: 0, maxInFlight: 0 },
    die,
  };
}

/** As an engine dies: at once, answering nobody. Without an exit code, as the kernel's out-of-memory killer does it. */
function die(exitCode: number | undefined): void {
  if (exitCode === undefined) process.kill(process.pid, 'SIGKILL');
  else process.exit(exitCode);
}

function holdLifeline(): void {
  process.stdin.on('close', () => process.exit(0)).on('error', () => process.exit(0));
  process.stdin.resume();
}

function writePortFile(path: string, port: number): void {
  writeFileSync(`${path}.new`, `${port}\n`);
  renameSync(`${path}.new`, path); // whoever sees the file sees the whole number
}

function fail(thrown: unknown): never {
  const error =
    thrown instanceof AerieError
      ? thrown
      : new AerieError(
          'server.did-not-start',
          thrown instanceof Error ? thrown.message : String(thrown),
          { remedy: 'check --port, --host, --port-file and --journal' },
          thrown,
        );
  const evidence = (error.detail.evidence ?? []).map((line) => `\n         ${line}`).join('');
  const because = error.detail.because === undefined ? '' : `\nbecause  ${error.detail.because}`;
  process.stderr.write(`error  ${error.code}\n       ${error.message}${evidence}${because}\ntry      ${error.detail.remedy}\n`);
  process.exit(error.exitCode);
}

async function runAsSurface(args: readonly string[]): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0));
  const settings = parseSettings(args);
  const lookalike = assemble(settings);
  const port = await listen(lookalike);
  if (settings.portFile !== '') writePortFile(settings.portFile, port);
  if (settings.lifeline) holdLifeline();
  process.stderr.write(`lookalike engine (no model) on http://${settings.host}:${port}\n`);
}

process.on('uncaughtException', fail); // a failed journal above all: no answer may leave without its line
try {
  const args = process.argv.slice(2);
  const words = splitWords(args);
  if (words === undefined) await runAsSurface(args);
  else {
    if (words.own.includes('--lifeline')) holdLifeline();
    await runAsEngine(words, { onListening: ({ portFile }, port) => portFile !== '' && writePortFile(portFile, port) });
  }
} catch (thrown) {
  fail(thrown);
}
