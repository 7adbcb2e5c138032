/** `aerie init`: writes a commented run file. It never replaces one unless asked. */
import { access, mkdir, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { renderStarter } from '../spec/starter.ts';
import type { OperationContext } from './context.ts';

export interface InitInput {
  /** File to write. */
  readonly file: string;
  readonly run: string;
  /** File with the prompts, relative to where the command runs. */
  readonly from: string;
  readonly model: string;
  /** URL of a vLLM server; left out: the embedded engine. */
  readonly attach?: string;
  readonly force: boolean;
}

export interface InitReport {
  readonly file: string;
  /** The prompts file is not there yet. */
  readonly sourceMissing: boolean;
}

const SCHEMA = fileURLToPath(new URL('../../schemas/run.schema.json', import.meta.url));
const DEFAULT_MAX_TOKENS = { embedded: 256, vllm: 4096 }; // a laptop's patience; a drafter's usual answers

export async function runInit(input: InitInput, _context: OperationContext): Promise<InitReport> {
  const file = resolve(input.file);
  const folder = dirname(file);
  const engine = input.attach === undefined ? 'embedded' : 'vllm';
  const text = renderStarter({
    schema: SCHEMA,
    run: input.run,
    model: input.model,
    engine,
    ...(input.attach === undefined ? {} : { attach: input.attach }),
    partition: 'B1',
    from: relative(folder, resolve(input.from)),
    maxTokens: DEFAULT_MAX_TOKENS[engine],
  });
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(file, text, { flag: input.force ? 'w' : 'wx' });
  } catch (thrown) {
    throw cannotWrite(file, thrown);
  }
  const sourceMissing = await access(resolve(input.from)).then(
    () => false,
    () => true,
  );
  return { file, sourceMissing };
}

function cannotWrite(file: string, thrown: unknown): AerieError {
  const code = systemCodeOf(thrown);
  if (code === 'EEXIST') {
    return new AerieError(
      'file.exists',
      `${file} is already there and was not touched.`,
      { remedy: 'Give another name, or --force to replace it.' },
      thrown,
    );
  }
  return new AerieError(
    'disk.read-only',
    `${file} cannot be written: ${code || String(thrown)}.`,
    { remedy: 'Give a file in a folder that you may write. Nothing was written.' },
    thrown,
  );
}
