/**
 * `aerie status --follow`: what the worker of a run does, from its ledger, until no worker is left. Reads only. It ends as
 * the run has ended: with the error of a run that stopped, and with one of its own where the worker was killed.
 */
import { AerieError, ERRORS, type ErrorCode } from '../base/errors.ts';
import type { Event } from '../base/events.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { computeRate, estimateRemaining, type Progress, RATE_WINDOW_MS, type RateSample } from './progress.ts';
import { type Worker, workerOf } from './worker-of.ts';

/** As often as a line may come. */
const LOOK_EVERY_MS = 1_000;

export interface FollowedRun {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly argument: string;
}

/** Returns when no worker is left, or when Ctrl-C ends the watching. */
export async function followRun(followed: FollowedRun, context: OperationContext): Promise<void> {
  const { run, ledger } = followed;
  const { clock } = context.host;
  let after = 0;
  let last: Event | undefined;
  const read = (tell: (event: Event) => void) => {
    for (let page = ledger.events(after); page.length > 0; page = ledger.events(after))
      for (const event of page) {
        after = event.n;
        if (isAboutRun(event)) last = event;
        tell(event);
      }
  };
  read(() => undefined); // what was before is what `status` shows
  let worker = await workerOf(run.folder);
  let lastSeen = worker;
  if (worker !== undefined) {
    context.onNote(`following pid ${worker.pid}; Ctrl-C ends the watching alone`);
    context.onProgress(watchLedger(followed, context, () => worker?.isDraining === true));
  }
  while (worker !== undefined) {
    lastSeen = worker;
    await clock.sleep(LOOK_EVERY_MS, context.drain);
    if (context.drain.aborted) return;
    worker = await workerOf(run.folder);
    read((event) => context.onEvent(event));
  }
  throwEnd(last, lastSeen, followed);
}

function isAboutRun({ kind }: Event): boolean {
  return kind === 'run.started' || kind === 'run.resumed' || kind === 'run.finished' || kind === 'run.stopped';
}

/** A run that has finished throws nothing. */
function throwEnd(last: Event | undefined, worker: Worker | undefined, { argument }: FollowedRun): void {
  if (last === undefined || last.kind === 'run.finished') return; // without a beginning nothing was ever worked on
  const log = worker === undefined || worker.log === '' ? '' : `\nIts last words: tail ${worker.log}`;
  const remedy = `What is committed is safe. Resume with: aerie run ${argument}${log}`;
  const code = String(last.facts['code'] ?? '');
  if (last.kind === 'run.stopped' && isErrorCode(code))
    throw new AerieError(code, `The run has stopped (${code}: ${ERRORS[code].title}).`, { remedy });
  throw new AerieError('run.cut-off', 'No worker is left, and the last one ended without a word.', {
    because: 'It was killed, or the machine went down.',
    remedy,
  });
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

/** The numbers of a worker as its ledger has them: what it leased is what it may have in flight. */
function watchLedger({ run, ledger }: FollowedRun, { host }: OperationContext, isDraining: () => boolean): () => Progress {
  const startedMs = host.clock.elapsed();
  const samples: RateSample[] = [];
  return () => {
    const elapsedMs = host.clock.elapsed() - startedMs;
    const partitions = ledger.partitions();
    samples.push({ elapsedMs, tokens: partitions.reduce((sum, { generatedTokens }) => sum + generatedTokens, 0) });
    while (samples.length > 2 && elapsedMs - (samples[1]?.elapsedMs ?? 0) > RATE_WINDOW_MS) samples.shift();
    const tokensPerS = computeRate(samples);
    const shown = partitions.map((partition) => ({ ...partition, enrolmentOpen: partition.enrolment === 'open' }));
    return {
      partitions: shown,
      inFlight: partitions.reduce((sum, { leased }) => sum + leased, 0),
      gate: run.inFlight,
      tokensPerS,
      elapsedMs,
      remainingMs: estimateRemaining(shown, tokensPerS),
      draining: isDraining(),
    };
  };
}
