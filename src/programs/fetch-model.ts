/**
 * For scripts: `node dist/programs/fetch-model.js [NAME]` prints the path of the model's file on stdout (NAME: as in
 * `server/model-file.ts`, `default` when left out), and where it came from on stderr. Exit 3 when it cannot be had.
 */
import { AerieError } from '../base/errors.ts';
import { formatBytes } from '../base/units.ts';
import type { ModelProgress } from '../server/model-cache.ts';
import { obtainModel } from '../server/model-file.ts';

/** A line per tenth: a log stays readable. */
const SHARES = 10;

async function main(): Promise<void> {
  const model = await obtainModel(process.argv[2] ?? 'default', { env: process.env, emit: tellTenths() });
  process.stderr.write(`${model.label}, ${model.revision}\n`);
  process.stdout.write(`${model.path}\n`);
}

function tellTenths(): (progress: ModelProgress) => void {
  let told = 0;
  return ({ text, doneBytes, totalBytes }) => {
    if (totalBytes === 0) {
      told = 0;
      if (doneBytes === 0) process.stderr.write(`${text}\n`);
      return;
    }
    const share = Math.floor((doneBytes / totalBytes) * SHARES);
    if (share <= told) return;
    told = share;
    process.stderr.write(`${text}: ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}\n`);
  };
}

function tellError(thrown: unknown): void {
  if (!(thrown instanceof AerieError)) throw thrown;
  const { because, evidence, remedy } = thrown.detail;
  const lines = [
    `error  ${thrown.code}`,
    thrown.message,
    ...(because === undefined ? [] : [`because ${because}`]),
    ...(evidence ?? []).map((line) => `  ${line}`),
    `try ${remedy}`,
  ];
  process.stderr.write(`${lines.join('\n')}\n`);
  process.exitCode = 3;
}

await main().catch(tellError);
