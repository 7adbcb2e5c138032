/**
 * What a checkpoint says about itself: its `config.json`, ModelOpt's `hf_quant_config.json`, and how many bytes its
 * weights have. From a folder on this machine, from the cache, or from the hub; no weight is ever fetched.
 * On failure: `model.unavailable`, with every place that was looked at.
 */
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import { cacheFolderOf } from '../../host/cache-folder.ts';
import { findHubFile, type HubAccess, HubError, listHubEntries } from '../../host/hub-files.ts';
import type { Machine } from '../../machine/machine.ts';
import { readMachineText } from '../../machine/read-text.ts';

export interface ModelFiles {
  readonly name: string;
  readonly config: unknown;
  /** Undefined where the checkpoint has none. */
  readonly quantConfig?: unknown;
  /** Bytes of all weight files; 0 = not known. */
  readonly weightBytes: number;
  /** For people: where all this is from. */
  readonly source: string;
}

/** A config is some kilobytes; 16 MiB stops a wrong file from being read into memory. */
const MOST_CONFIG_BYTES = 16 * 1024 * 1024;
const WEIGHTS = /\.(safetensors|bin)$/;
/** Copies of the weights in another layout, which a server does not load beside the others. */
const COPIES = /(^|\/)(original|consolidated|metal|onnx)[./]/;

/** `model` is a hub name, a folder with a `config.json`, or that file. */
export async function obtainModelFiles(model: string, access: HubAccess, onNote: (text: string) => void): Promise<ModelFiles> {
  const path = resolve(model);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return readFolder(model, path);
  if (found?.isFile()) return { name: model, config: await readJson(path, model), weightBytes: 0, source: path };
  if (!/^[\w.-]+\/[\w.-]+$/.test(model)) throw unavailable(model, [`${path}: there is no such file or folder`]);
  const cached = join(cacheFolderOf(access.env), 'configs', `${model.replace('/', '--')}.json`);
  const kept = await readKept(cached);
  if (kept !== undefined) return { ...kept, name: model, source: `config.json of ${model}, from the cache` };
  onNote(`fetching config.json of ${model}`);
  const fetched = await fetchFiles(model, access);
  await keep(cached, fetched);
  return fetched;
}

async function readFolder(model: string, path: string): Promise<ModelFiles> {
  const config = await readJson(join(path, 'config.json'), model);
  const quantConfig = await readJson(join(path, 'hf_quant_config.json'), model).catch(() => undefined);
  let weightBytes = 0;
  for (const name of await readdir(path)) {
    if (isWeights(name)) weightBytes += (await stat(join(path, name))).size;
  }
  return { name: basename(path), config, weightBytes, source: join(path, 'config.json'), ...given(quantConfig) };
}

/** A checkpoint in a folder of another machine; undefined: no config.json can be read there. */
export async function readModelFilesThere(model: string, machine: Machine): Promise<ModelFiles | undefined> {
  const read = async (name: string) => parseKept(await readMachineText(machine, `${model}/${name}`, MOST_CONFIG_BYTES));
  const config = await read('config.json');
  if (config === undefined) return undefined;
  const list = `cd -- ${quoteShell(model)} && stat -L -c '%s %n' -- *`;
  const sizes = await machine.run({ file: 'sh', args: ['-c', list], timeoutMs: LIST_MS });
  const lines = sizes.kind === 'ended' ? sizes.stdout.split('\n') : [];
  const weightBytes = lines
    .map((line) => /^(\d+) (.*)$/.exec(line))
    .reduce((sum, found) => (found?.[2] !== undefined && isWeights(found[2]) ? sum + Number(found[1]) : sum), 0);
  const source = `${model}/config.json on ${machine.name}`;
  return { name: basename(model), config, weightBytes, source, ...given(await read('hf_quant_config.json')) };
}

/** A folder of some hundred files on a network disk. */
const LIST_MS = 30_000;

function isWeights(name: string): boolean {
  return WEIGHTS.test(name) && !COPIES.test(name);
}

function parseKept(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readJson(path: string, model: string): Promise<unknown> {
  try {
    const { size } = await stat(path);
    if (size > MOST_CONFIG_BYTES) throw new Error(`it has ${size} bytes, which no config.json has`);
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (thrown) {
    throw unavailable(model, [`${path}: ${thrown instanceof Error ? thrown.message : String(thrown)}`]);
  }
}

async function fetchFiles(model: string, access: HubAccess): Promise<ModelFiles> {
  try {
    const entries = await listHubEntries(model, 'main', access);
    const weightBytes = entries
      .filter(({ path }) => WEIGHTS.test(path) && !COPIES.test(path))
      .reduce((sum, { path, bytes }) => (path.endsWith('.bin') && entries.some(isSafetensors) ? sum : sum + bytes), 0);
    const config = await fetchJson(model, 'config.json', access);
    if (config === undefined) throw new HubError('it has no config.json', 404, undefined);
    const hasQuantConfig = entries.some(({ path }) => path === 'hf_quant_config.json');
    const quantConfig = hasQuantConfig ? await fetchJson(model, 'hf_quant_config.json', access) : undefined;
    return { name: model, config, weightBytes, source: `config.json of ${model}, from the hub`, ...given(quantConfig) };
  } catch (thrown) {
    access.signal?.throwIfAborted();
    if (!(thrown instanceof HubError) && !(thrown instanceof SyntaxError)) throw thrown;
    throw unavailable(model, [`model hub ${model}: ${thrown.message}`]);
  }
}

function isSafetensors({ path }: { readonly path: string }): boolean {
  return path.endsWith('.safetensors');
}

async function fetchJson(repo: string, path: string, access: HubAccess): Promise<unknown> {
  const file = await findHubFile({ repo, path }, access);
  if (file === undefined) return undefined;
  if (file.bytes > MOST_CONFIG_BYTES) throw new HubError(`${path} has ${file.bytes} bytes`, 0, undefined);
  const pieces: Uint8Array[] = [];
  for await (const piece of await file.open()) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString('utf8'));
}

async function readKept(path: string): Promise<Omit<ModelFiles, 'name' | 'source'> | undefined> {
  try {
    const kept = JSON.parse(await readFile(path, 'utf8')) as { config?: unknown; quantConfig?: unknown; weightBytes?: unknown };
    if (typeof kept.config !== 'object' || kept.config === null) return undefined;
    const weightBytes = typeof kept.weightBytes === 'number' ? kept.weightBytes : 0;
    return { config: kept.config, weightBytes, ...given(kept.quantConfig) };
  } catch {
    return undefined; // not there, or not whole: it is fetched anew
  }
}

/** The cache is a convenience: where it cannot be written, the plan is still made. */
async function keep(path: string, { config, quantConfig, weightBytes }: ModelFiles): Promise<void> {
  const partial = `${path}.${process.pid}.part`;
  await mkdir(dirname(path), { recursive: true })
    .then(() => writeFile(partial, JSON.stringify({ config, quantConfig, weightBytes })))
    .then(() => rename(partial, path))
    .catch(() => undefined);
}

function given(quantConfig: unknown): { readonly quantConfig?: unknown } {
  return quantConfig === undefined ? {} : { quantConfig };
}

function unavailable(model: string, evidence: readonly string[]): AerieError {
  return new AerieError('model.unavailable', `The shape of ${model} cannot be had.`, {
    because: 'A plan needs the config.json of the model; it fetches no weights.',
    evidence,
    remedy:
      'Check the name (export HF_TOKEN=… for a private model), or give a folder that holds config.json: aerie plan --model FOLDER',
  });
}
