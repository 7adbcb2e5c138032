/**
 * The worker's side of `aerie run --detach`: what it says before it works goes to whoever started it as well; when it holds the run
 * its log takes its place, and nobody is told anything any more.
 *
 *   started ─ notes, events ─▶ run.started | run.resumed: begun, the pipe is closed
 *           └─ error ────────▶ failed, with the error
 */
import type { AerieError } from '../../base/errors.ts';
import type { Event } from '../../base/events.ts';
import { openWorkerPipe, type WorkerPipe } from '../../host/worker-process.ts';
import type { OperationContext } from '../context.ts';
import { failedWord, type WorkerWord } from './words.ts';
import { keepBounded, logOf, takePlace } from './worker-log.ts';

/** The log in which a worker begins; that it is there makes a process a detached worker. Never passed on. */
export const DETACHED = 'AERIE_DETACHED';

export interface AsWorker {
  /** The context of the run, heard by the starter too. */
  tell(context: OperationContext): OperationContext;
  failed(error: AerieError): void;
}

/** undefined: this process works where it was started. Takes the variable out of the environment, so that no server gets it. */
export function asWorker(env: NodeJS.ProcessEnv): AsWorker | undefined {
  const beginning = env[DETACHED];
  if (beginning === undefined) return undefined;
  delete env[DETACHED];
  const pipe = openWorkerPipe();
  const say = (word: WorkerWord) => pipe.say(JSON.stringify(word));
  return {
    tell: (context) => ({
      ...context,
      isDetached: true,
      onNote(text) {
        say({ kind: 'note', text });
        context.onNote(text);
      },
      onEvent(event) {
        context.onEvent(event);
        if (isBeginning(event)) begin(event, beginning, pipe);
        else say({ kind: 'event', event });
      },
    }),
    failed(error) {
      say(failedWord(error));
      pipe.close();
    },
  };
}

function isBeginning({ kind }: Event): boolean {
  return kind === 'run.started' || kind === 'run.resumed';
}

function begin({ facts }: Event, beginning: string, pipe: WorkerPipe): void {
  const folder = String(facts['folder']);
  takePlace(folder, beginning);
  keepBounded(logOf(folder));
  pipe.say(JSON.stringify({ kind: 'begun' } satisfies WorkerWord));
  pipe.close();
}
