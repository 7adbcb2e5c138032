/** The log's sign of life: one line every ten seconds in which the engine worked, none while it idles. */
import type { LoadedModel } from './model.ts';

/** Short enough that a watcher sees progress, long enough that a day's log stays below a megabyte. */
const PERIOD_MS = 10_000;

export function watchActivity(model: LoadedModel, log: (line: string) => void): void {
  let told = 0;
  setInterval(() => {
    const generated = model.activity.generated - told;
    told = model.activity.generated;
    const { running, queued } = model.pool;
    if (running + queued + generated === 0) return;
    log(`decode: running ${running}, queued ${queued}, ${(generated / (PERIOD_MS / 1000)).toFixed(1)} tokens/s`);
  }, PERIOD_MS).unref();
}
