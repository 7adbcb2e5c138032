/** `aerie init`: writes a commented run file. It never replaces one unless asked. */
import { access, mkdir, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { type AttachedEngine, renderStarter } from '../spec/starter.ts';
import type { OperationContext } from './context.ts';

export interface InitInput {
  /** File to write. */
  readonly file: string;
  readonly run: string;
  /** File with the prompts, relative to where the command runs. */
  readonly from: string;
  readonly model: string;
  /** Kind of a server that is already there; left out: vllm where `attach` is given, else the embedded engine. */
  readonly engine?: AttachedEngine;
  /** URL of that server; left out: this machine, at the port that its engine has by default. */
  readonly attach?: string;
  readonly force: boolean;
}

export interface InitReport {
  readonly file: string;
  /** The prompts file is not there yet. */
  readonly sourceMissing: boolean;
}

const SCHEMA = fileURLToPath(new URL('../../schemas/run.schema.json', import.meta.url));
const [LAPTOP_TOKENS, USUAL_TOKENS] = [256, 4096]; // a laptop's patience; a drafter's usual answers
/** Where the engines listen when nobody says otherwise. */
const DEFAULT_URL: Readonly<Partial<Record<AttachedEngine, string>>> = {
  vllm: 'http://127.0.0.1:8000',
  sglang: 'http://127.0.0.1:30000',
};

export async function runInit(input: InitInput, _context: OperationContext): Promise<InitReport> {
  const file = resolve(input.file);
  const folder = dirname(file);
  const engine = input.engine ?? (input.attach === undefined ? 'embedded' : 'vllm');
  const attach = engine === 'embedded' ? undefined : (input.attach ?? DEFAULT_URL[engine]);
  if (engine !== 'embedded' && attach === undefined) throw needsAttach(engine);
  const text = renderStarter({
    schema: SCHEMA,
    run: input.run,
    model: input.model,
    engine,
    ...(attach === undefined ? {} : { attach }),
    partition: 'B1',
    from: relative(folder, resolve(input.from)),
    maxTokens: engine === 'embedded' ? LAPTOP_TOKENS : USUAL_TOKENS,
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

function needsAttach(engine: AttachedEngine): AerieError {
  return new AerieError('usage.flag', `--engine ${engine} needs the address of the endpoint.`, {
    remedy: `aerie init --engine ${engine} --attach https://HOST/BASE --model NAME    Nothing was written.`,
  });
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
