/** `aerie init`: writes a commented run file. It never replaces one unless asked. */
import { access, mkdir, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { readRunFile } from '../spec/read-run-file.ts';
import { type AttachedEngine, renderStarter, type Starter } from '../spec/starter.ts';
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
  /** Address of that server; left out: this machine, at the port that its engine has by default. */
  readonly attach?: string;
  /** What is typed after `ssh`: the engine is launched there, SGLang where `engine` is left out. */
  readonly machine?: string;
  readonly force: boolean;
}

export interface InitReport {
  readonly file: string;
  /** The prompts file is not there yet. */
  readonly sourceMissing: boolean;
  /** The machine on which a run launches its engine; '' = it launches none elsewhere. */
  readonly machine: string;
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
  const server = serverOf(input);
  const text = renderStarter({
    schema: SCHEMA,
    run: input.run,
    model: input.model,
    ...server,
    partition: 'B1',
    from: relative(folder, resolve(input.from)),
    maxTokens: server.engine === 'embedded' ? LAPTOP_TOKENS : USUAL_TOKENS,
  });
  refuseMistakes(text, file);
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
  return { file, sourceMissing, machine: server.machine ?? '' };
}

function serverOf({ engine, attach, machine, model }: InitInput): Pick<Starter, 'engine' | 'attach' | 'machine'> {
  if (machine !== undefined) {
    if (attach !== undefined || engine === 'openai') throw cannotLaunch(machine);
    if (model === '') throw needsModel(machine);
    return { engine: engine ?? 'sglang', machine };
  }
  const kind = engine ?? (attach === undefined ? 'embedded' : 'vllm');
  if (kind === 'embedded') return { engine: kind };
  const address = attach ?? DEFAULT_URL[kind];
  if (address === undefined) throw needsAttach(kind);
  return { engine: kind, attach: address };
}

/** What was given may be no address or no machine: better said now than by the next command. */
function refuseMistakes(text: string, file: string): void {
  try {
    readRunFile(text, file);
  } catch (thrown) {
    if (!(thrown instanceof AerieError) || thrown.code !== 'run-file.wrong') throw thrown;
    const evidence = thrown.detail.evidence?.map((line) => line.replace(/^\S*:\d+:\d+ +/, '')) ?? [];
    const remedy = 'Give another value. Nothing was written.';
    throw new AerieError('usage.flag', 'A run file with what was given would have a mistake.', { evidence, remedy }, thrown);
  }
}

function needsModel(machine: string): AerieError {
  return new AerieError('usage.flag', `--machine ${machine} needs the model that is launched there.`, {
    remedy: `aerie init --machine ${machine} --model OWNER/NAME    or --model /path, a folder there. Nothing was written.`,
  });
}

function cannotLaunch(machine: string): AerieError {
  return new AerieError('usage.flag', `--machine ${machine} is for SGLang and vLLM that Aerie launches there.`, {
    remedy: `A server that runs there already: aerie init --engine sglang --attach ssh://${machine.replace(/^ssh:\/\//, '')}:30000 --model NAME    Nothing was written.`,
  });
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
