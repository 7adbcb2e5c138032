/** A run over its first few prompts, in a folder that is thrown away: what `preview` and `rehearse` work on instead of the run. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AerieError, diskCodeOf, systemCodeOf } from '../base/errors.ts';
import type { RunSpec } from '../spec/run.ts';

/** `name`: what it is for, in its name. On failure an AerieError of the disk: TMPDIR may name what is not there, or is full. */
export async function makeThrowaway(name: string, place = tmpdir()): Promise<string> {
  try {
    return await mkdtemp(join(place, `aerie-${name}-`));
  } catch (thrown) {
    const code = systemCodeOf(thrown);
    const isFull = diskCodeOf(code) === 'disk.full';
    const remedy = 'Set TMPDIR to a folder that is there and that you may write:  export TMPDIR=FOLDER\nNothing was started.';
    throw new AerieError(
      isFull ? 'disk.full' : 'disk.read-only',
      `No folder can be made in ${place}: ${isFull ? 'the disk is full' : code || String(thrown)}.`,
      { remedy },
      thrown,
    );
  }
}

/** The same run in another folder, over the first prompts of each partition, `most` in all. Where what is known of its servers lies stays. */
export function firstPromptsOf(run: RunSpec, folder: string, most: number): RunSpec {
  const shown = run.partitions.slice(0, most);
  const each = Math.floor(most / shown.length);
  const more = most - each * shown.length;
  const partitions = shown.map((partition, at) => {
    const limit = each + (at < more ? 1 : 0);
    return { ...partition, budget: 0, limit: partition.limit > 0 ? Math.min(partition.limit, limit) : limit };
  });
  return { ...run, folder, partitions };
}

export function isStop({ fault }: AerieError): boolean {
  return fault === 'interrupted' || fault === 'terminated';
}

/** What is done is said with the folder where it lies, and this one is gone in a moment. `what`: `a preview`. */
export function withoutFolder(thrown: AerieError, folder: string, what: string): AerieError {
  const kept = thrown.detail.remedy.split('\n').filter((line) => !line.includes(folder));
  const remedy = [`Nothing of ${what} is kept, and the run itself was not touched.`, ...kept].join('\n');
  return new AerieError(thrown.code, thrown.message, { ...thrown.detail, remedy }, thrown);
}

export function stoppedEarly(thrown: AerieError, what: string): AerieError {
  const remedy = 'Nothing was kept, and the run itself was not touched. The same command begins again.';
  return new AerieError(thrown.code, `${what} was stopped before it was whole.`, { remedy }, thrown);
}
