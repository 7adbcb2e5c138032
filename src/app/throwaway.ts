/** A run over its first few prompts, in a folder that is thrown away: what `preview` and `rehearse` work on instead of the run. */
import { AerieError } from '../base/errors.ts';
import type { RunSpec } from '../spec/run.ts';

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
